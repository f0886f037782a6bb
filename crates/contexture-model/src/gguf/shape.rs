//! The numbers that describe a network, and what must hold between them: the engine divides by them,
//! reserves memory by them, and ends the process where they do not fit.

use super::arch;
use super::error::{GgufError, grouped};
use super::keys::{Keys, MOST_LAYERS};

/// The most experts that the engine takes.
const MOST_EXPERTS: u32 = 1024;
/// The most that any width may be.
const WIDEST: u32 = 1 << 20;

pub(super) struct Shape {
    pub context_length: u32,
    pub block_count: u32,
    pub embedding_length: u32,
    pub head_count: Vec<u32>,
    pub head_count_kv: Vec<u32>,
    pub key_length: u32,
    pub value_length: u32,
    pub expert_count: u32,
    /// Keys and values are kept in each layer whose number, from 1, is a multiple of this.
    pub attention_every: u32,
}

impl Shape {
    pub fn of(keys: &Keys, architecture: &str) -> Result<Self, GgufError> {
        let numbers = Numbers { keys, architecture };
        for rule in RULES {
            numbers.check(&rule)?;
        }
        let layers = numbers.of("block_count")?.unwrap_or_default();
        let width = numbers.of("embedding_length")?.unwrap_or_default();
        let (head_count, head_count_kv) = numbers.heads(layers, width)?;
        let head = width.checked_div(head_count[0]).unwrap_or_default();
        let shape = Self {
            context_length: numbers.of("context_length")?.unwrap_or_default(),
            block_count: layers,
            embedding_length: width,
            head_count,
            head_count_kv,
            key_length: numbers.of("attention.key_length")?.unwrap_or(head),
            value_length: numbers.of("attention.value_length")?.unwrap_or(head),
            expert_count: numbers.of("expert_count")?.unwrap_or_default(),
            attention_every: numbers.of("full_attention_interval")?.unwrap_or(1),
        };
        numbers.check_experts(&shape)?;
        numbers.check_rope(&shape)?;
        numbers.check_layers(&shape)?;
        Ok(shape)
    }
}

/// What a number of the architecture must be.
struct Rule {
    /// The architectures; none are all.
    of: &'static [&'static str],
    key: &'static str,
    least: u32,
    most: u32,
    /// Whether there is no model without it.
    must: bool,
}

const fn must(of: &'static [&'static str], key: &'static str, least: u32, most: u32) -> Rule {
    let must = true;
    Rule {
        of,
        key,
        least,
        most,
        must,
    }
}

const fn may(key: &'static str, least: u32, most: u32) -> Rule {
    let (of, must): (&[_], _) = (&[], false);
    Rule {
        of,
        key,
        least,
        most,
        must,
    }
}

const RULES: [Rule; 26] = [
    must(&[], "context_length", 1, 1 << 27),
    must(&[], "block_count", 1, MOST_LAYERS),
    must(&[], "embedding_length", 1, WIDEST),
    may("attention.key_length", 1, WIDEST),
    may("attention.value_length", 1, WIDEST),
    may("attention.output_group_count", 1, WIDEST),
    may("attention.indexer.block_size", 1, WIDEST),
    may("expert_count", 0, MOST_EXPERTS),
    may("expert_group_count", 0, MOST_EXPERTS),
    may("expert_group_used_count", 0, MOST_EXPERTS),
    may("experts_per_group", 1, MOST_EXPERTS),
    may("full_attention_interval", 1, MOST_LAYERS),
    may("nextn_predict_layers", 0, MOST_LAYERS),
    may("num_loops", 1, MOST_LAYERS),
    may("rope.dimension_count", 0, WIDEST),
    may("shortconv.l_cache", 1, WIDEST),
    may("ssm.conv_kernel", 1, WIDEST),
    may("ssm.inner_size", 1, WIDEST),
    may("token_shift_count", 1, 16),
    must(&["deepseek4"], "attention.output_group_count", 1, WIDEST),
    must(
        &[
            "bailingmoe2",
            "glm4moe",
            "grovemoe",
            "lfm2moe",
            "smallthinker",
        ],
        "expert_count",
        1,
        MOST_EXPERTS,
    ),
    must(&["glm5-next"], "attention.indexer.kpool", 2, WIDEST),
    must(&["glm5-next"], "hyper_connection.count", 4, 4),
    must(&["hrm_text"], "hrm.layers_per_stack", 1, MOST_LAYERS),
    must(
        &["arwkv7", "rwkv6", "rwkv6qwen2", "rwkv7"],
        "wkv.head_size",
        1,
        WIDEST,
    ),
    must(
        &[
            "falcon-h1",
            "granitehybrid",
            "mamba2",
            "nemotron_h",
            "nemotron_h_moe",
        ],
        "ssm.group_count",
        1,
        WIDEST,
    ),
];

/// The numbers of an architecture, by the end of their keys.
struct Numbers<'a> {
    keys: &'a Keys,
    architecture: &'a str,
}

impl Numbers<'_> {
    fn key(&self, end: &str) -> String {
        format!("{}.{end}", self.architecture)
    }

    fn of(&self, end: &str) -> Result<Option<u32>, GgufError> {
        self.keys.u32(&self.key(end))
    }

    fn wrong(&self, end: &str, what: impl Into<String>) -> GgufError {
        GgufError::key(&self.key(end), what)
    }

    fn check(&self, rule: &Rule) -> Result<(), GgufError> {
        if !rule.of.is_empty() && !rule.of.contains(&self.architecture) {
            return Ok(());
        }
        match self.of(rule.key)? {
            None if rule.must => Err(self.wrong(rule.key, "it is missing")),
            Some(n) if n < rule.least || n > rule.most => {
                let [n, least, most] = [n, rule.least, rule.most].map(|n| grouped(n.into()));
                let what = format!("it is {n}, and {least} to {most} are possible");
                Err(self.wrong(rule.key, what))
            }
            _ => Ok(()),
        }
    }

    /// Heads, and those for keys and values, for each layer.
    fn heads(&self, layers: u32, width: u32) -> Result<(Vec<u32>, Vec<u32>), GgufError> {
        const HEADS: &str = "attention.head_count";
        const HEADS_KV: &str = "attention.head_count_kv";
        let all = self.keys.layers(&self.key(HEADS), layers)?;
        let kv = self.keys.layers(&self.key(HEADS_KV), layers)?;
        if arch::is_recurrent(self.architecture) {
            let none = vec![0; layers as usize];
            return Ok((all.unwrap_or(none.clone()), none));
        }
        let all = all.ok_or_else(|| self.wrong(HEADS, "it is missing"))?;
        // Layers without attention have none; the engine divides by the first layer's.
        if all[0] == 0 {
            return Err(self.wrong(HEADS, "it is 0 for the first layer"));
        }
        if let Some(most) = all.iter().find(|n| **n > width) {
            let what = format!(
                "it is {}, more than the embedding's length of {width}",
                grouped((*most).into())
            );
            return Err(self.wrong(HEADS, what));
        }
        let kv = kv.unwrap_or_else(|| all.clone());
        if kv.iter().all(|n| *n == 0) {
            return Err(self.wrong(HEADS_KV, "it is 0"));
        }
        for (layer, (n, kv)) in all.iter().zip(&kv).enumerate() {
            let fits = *kv == 0 || (kv <= n && n % kv == 0);
            if !fits {
                let kv = grouped((*kv).into());
                let what =
                    format!("it is {kv} in layer {layer}, which does not divide its {n} heads");
                return Err(self.wrong(HEADS_KV, what));
            }
        }
        Ok((all, kv))
    }

    fn check_experts(&self, shape: &Shape) -> Result<(), GgufError> {
        const USED: &str = "expert_used_count";
        const GROUPS: &str = "expert_group_count";
        const GROUPS_USED: &str = "expert_group_used_count";
        let experts = shape.expert_count;
        let used = self.keys.layers(&self.key(USED), shape.block_count)?;
        let used = used.unwrap_or_default();
        let most = used.iter().copied().max().unwrap_or_default();
        if most > experts || (most == 0 && experts > 0) {
            let most = grouped(most.into());
            return Err(self.wrong(USED, format!("it is {most} of {experts} experts")));
        }
        // The engine divides by it where the width is not given.
        let given = self.keys.has(&self.key("expert_feed_forward_length"));
        if experts > 0 && !given && used.contains(&0) {
            return Err(self.wrong(USED, "it is 0 in one of the layers"));
        }
        let groups = self.of(GROUPS)?.unwrap_or_default();
        if groups > 0 && groups >= experts {
            return Err(self.wrong(GROUPS, format!("it is {groups} for {experts} experts")));
        }
        if groups > 1 {
            let used = self.of(GROUPS_USED)?.unwrap_or_default();
            if !experts.is_multiple_of(groups) {
                let what = format!("it is {groups}, which does not divide {experts} experts");
                return Err(self.wrong(GROUPS, what));
            }
            if used == 0 || used >= groups {
                return Err(self.wrong(GROUPS_USED, format!("it is {used} of {groups} groups")));
            }
        }
        Ok(())
    }

    fn check_rope(&self, shape: &Shape) -> Result<(), GgufError> {
        const SCALING: &str = "rope.scaling.type";
        const DIMENSIONS: &str = "rope.dimension_count";
        if let Some(scaling) = self.keys.text(&self.key(SCALING))?
            && !["none", "linear", "yarn", "longrope"].contains(&scaling)
        {
            return Err(self.wrong(SCALING, "it is none that the engine knows"));
        }
        if arch::is_recurrent(self.architecture) {
            return Ok(());
        }
        let mla = self.of("attention.key_length_mla")?;
        let head = mla.unwrap_or(shape.key_length);
        let rotated = self.of(DIMENSIONS)?.unwrap_or(shape.key_length);
        let fits = match self.architecture {
            // Some of a key must be left that is not rotated.
            "deepseek2" | "hy_v4" => rotated < head,
            _ => rotated <= head.max(shape.key_length),
        };
        if !fits || rotated % 2 != 0 {
            let [rotated, head] = [rotated, head].map(|n| grouped(n.into()));
            let what = format!("{rotated} of the {head} numbers of a head cannot be rotated");
            return Err(self.wrong(DIMENSIONS, what));
        }
        Ok(())
    }

    fn check_layers(&self, shape: &Shape) -> Result<(), GgufError> {
        let layers = u64::from(shape.block_count);
        let number = |end| Ok(u64::from(self.of(end)?.unwrap_or_default()));
        if number("nextn_predict_layers")? >= layers {
            return Err(self.wrong(
                "nextn_predict_layers",
                format!("it is not less than all {layers} layers"),
            ));
        }
        match self.architecture {
            "nanbeige" if layers * number("num_loops")? > MOST_LAYERS.into() => Err(self.wrong(
                "num_loops",
                format!("{layers} layers cannot be run as often"),
            )),
            "hrm_text" => {
                let (stack, high) = (number("hrm.layers_per_stack")?, number("hrm.h_cycles")?);
                let low = number("hrm.l_cycles")?;
                let made = stack.saturating_mul(high).saturating_mul(low + 1);
                match low > 0 && made == layers {
                    true => Ok(()),
                    false => Err(self.wrong(
                        "hrm.l_cycles",
                        format!("the cycles do not make {layers} layers"),
                    )),
                }
            }
            "glm5-next"
                if number("attention.indexer.top_k")? % number("attention.indexer.kpool")? != 0 =>
            {
                Err(self.wrong("attention.indexer.top_k", "it does not come in whole pools"))
            }
            "jamba" | "granitehybrid"
                if number("ssm.inner_size")? != 2 * u64::from(shape.embedding_length) =>
            {
                Err(self.wrong("ssm.inner_size", "it is not twice the embedding's length"))
            }
            "bailingmoe3" => {
                let safe = self.keys.flag(&self.key("kda.safe_gate"))?;
                let bound = self.keys.f32(&self.key("kda.gate_lower_bound"))?;
                match safe != Some(false) && bound.is_some_and(|bound| bound < 0.0) {
                    true => Ok(()),
                    false => {
                        Err(self.wrong("kda.safe_gate", "it is not true with a bound below 0"))
                    }
                }
            }
            "deepseek4"
                if self.keys.len(&self.key("attention.compress_ratios"))
                    > Some(MOST_LAYERS.into()) =>
            {
                let what = format!("it has more numbers than {MOST_LAYERS} layers need");
                Err(self.wrong("attention.compress_ratios", what))
            }
            _ => Ok(()),
        }
    }
}

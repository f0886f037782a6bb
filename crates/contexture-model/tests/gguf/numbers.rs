//! Numbers that do not fit together.

use crate::gguf::writer::{Gguf, Value, text};
use crate::gguf::{read, refused};

/// A small model with another number.
fn llama(key: &str, n: u32) -> Gguf {
    Gguf::llama().with(&format!("llama.{key}"), Value::U32(n))
}

#[test]
fn numbers_that_the_engine_divides_by_or_reserves_from_are_sane() {
    let key = |key: &str, what: &str| format!("key \"llama.{key}\": {what}");
    for (file, name, what) in [
        (
            llama("context_length", 0),
            "context_length",
            "it is 0, and 1 to 134,217,728 are possible",
        ),
        (
            llama("context_length", 1 << 28),
            "context_length",
            "it is 268,435,456, and 1 to 134,217,728 are possible",
        ),
        (
            llama("block_count", 0),
            "block_count",
            "it is 0, and 1 to 512 are possible",
        ),
        (
            llama("block_count", 513),
            "block_count",
            "it is 513, and 1 to 512 are possible",
        ),
        (
            llama("embedding_length", 0),
            "embedding_length",
            "it is 0, and 1 to 1,048,576 are possible",
        ),
        (
            llama("attention.head_count", 0),
            "attention.head_count",
            "it is 0 for the first layer",
        ),
        (
            llama("attention.head_count", 65),
            "attention.head_count",
            "it is 65, more than the embedding's length of 64",
        ),
        (
            llama("attention.head_count_kv", 0),
            "attention.head_count_kv",
            "it is 0",
        ),
        (
            llama("attention.head_count_kv", 8),
            "attention.head_count_kv",
            "it is 8 in layer 0, which does not divide its 4 heads",
        ),
        (
            llama("attention.head_count_kv", 3),
            "attention.head_count_kv",
            "it is 3 in layer 0, which does not divide its 4 heads",
        ),
        (
            Gguf::llama()
                .with("llama.attention.head_count", Value::U32s(vec![4, 0]))
                .with("llama.attention.head_count_kv", Value::U32s(vec![2, 2])),
            "attention.head_count_kv",
            "it is 2 in layer 1, which does not divide its 0 heads",
        ),
        (
            llama("attention.key_length", 0),
            "attention.key_length",
            "it is 0, and 1 to 1,048,576 are possible",
        ),
        (
            llama("rope.dimension_count", 15),
            "rope.dimension_count",
            "15 of the 16 numbers of a head cannot be rotated",
        ),
        (
            llama("rope.dimension_count", 18),
            "rope.dimension_count",
            "18 of the 16 numbers of a head cannot be rotated",
        ),
        (
            llama("nextn_predict_layers", 2),
            "nextn_predict_layers",
            "it is not less than all 2 layers",
        ),
        (
            llama("full_attention_interval", 0),
            "full_attention_interval",
            "it is 0, and 1 to 512 are possible",
        ),
        (
            Gguf::llama().with("llama.rope.scaling.type", text("no such")),
            "rope.scaling.type",
            "it is none that the engine knows",
        ),
    ] {
        refused([(file, &key(name, what))]);
    }
}

#[test]
fn experts_fit_together() {
    let experts = |count, used| {
        llama("expert_count", count).with("llama.expert_used_count", Value::U32(used))
    };
    let groups = |count, groups, used| {
        experts(count, 2)
            .with("llama.expert_group_count", Value::U32(groups))
            .with("llama.expert_group_used_count", Value::U32(used))
    };
    read(&experts(8, 2).bytes()).unwrap();
    read(&groups(8, 4, 2).bytes()).unwrap();
    let uneven = experts(8, 2).with("llama.expert_used_count", Value::U32s(vec![2, 0]));
    read(
        &uneven
            .clone()
            .with("llama.expert_feed_forward_length", Value::U32(1))
            .bytes(),
    )
    .unwrap();
    refused([
        (
            experts(1025, 2),
            "key \"llama.expert_count\": it is 1,025, and 0 to 1,024 are possible",
        ),
        (
            experts(8, 9),
            "key \"llama.expert_used_count\": it is 9 of 8 experts",
        ),
        (
            experts(8, 0),
            "key \"llama.expert_used_count\": it is 0 of 8 experts",
        ),
        (
            experts(0, 1),
            "key \"llama.expert_used_count\": it is 1 of 0 experts",
        ),
        (
            uneven,
            "key \"llama.expert_used_count\": it is 0 in one of the layers",
        ),
        (
            groups(8, 8, 2),
            "key \"llama.expert_group_count\": it is 8 for 8 experts",
        ),
        (
            groups(8, 3, 2),
            "key \"llama.expert_group_count\": it is 3, which does not divide 8 experts",
        ),
        (
            groups(8, 4, 4),
            "key \"llama.expert_group_used_count\": it is 4 of 4 groups",
        ),
        (
            groups(8, 4, 0),
            "key \"llama.expert_group_used_count\": it is 0 of 4 groups",
        ),
        (
            Gguf::of("glm4moe"),
            "key \"glm4moe.expert_count\": it is missing",
        ),
    ]);
}

#[test]
fn numbers_of_single_architectures_fit_together() {
    let of = |name: &str, numbers: &[(&str, u32)]| {
        let with = |file: Gguf, (key, n): &(&str, u32)| {
            file.with(&format!("{name}.{key}"), Value::U32(*n))
        };
        numbers.iter().fold(Gguf::of(name), with)
    };
    let hrm = [
        ("hrm.layers_per_stack", 1),
        ("hrm.h_cycles", 1),
        ("hrm.l_cycles", 1),
    ];
    read(&of("hrm_text", &hrm).bytes()).unwrap();
    let mla = [
        ("attention.key_length_mla", 24),
        ("rope.dimension_count", 8),
    ];
    read(&of("deepseek2", &mla).bytes()).unwrap();
    let jamba = [("ssm.inner_size", 128)];
    read(&of("jamba", &jamba).bytes()).unwrap();
    let glm = [
        ("attention.indexer.kpool", 4),
        ("hyper_connection.count", 4),
        ("attention.indexer.top_k", 8),
    ];
    read(&of("glm5-next", &glm).bytes()).unwrap();
    read(&of("nanbeige", &[("num_loops", 256)]).bytes()).unwrap();
    let bailing = |safe, bound| {
        Gguf::of("bailingmoe3")
            .with("bailingmoe3.kda.safe_gate", Value::Bool(safe))
            .with("bailingmoe3.kda.gate_lower_bound", Value::F32(bound))
    };
    read(&bailing(1, -1.0).bytes()).unwrap();
    let deepseek4 = of("deepseek4", &[("attention.output_group_count", 1)]);
    let ratios = |n| {
        deepseek4.clone().with(
            "deepseek4.attention.compress_ratios",
            Value::U32s(vec![1; n]),
        )
    };
    read(&ratios(512).bytes()).unwrap();
    refused([
        (
            of("rwkv6", &[]),
            "key \"rwkv6.wkv.head_size\": it is missing",
        ),
        (
            of("mamba2", &[("ssm.group_count", 0)]),
            "key \"mamba2.ssm.group_count\": it is 0, and 1 to 1,048,576 are possible",
        ),
        (
            of("hrm_text", &[hrm[0], hrm[1], ("hrm.l_cycles", 2)]),
            "key \"hrm_text.hrm.l_cycles\": the cycles do not make 2 layers",
        ),
        (
            of("deepseek2", &[mla[0], ("rope.dimension_count", 24)]),
            "key \"deepseek2.rope.dimension_count\": 24 of the 24 numbers of a head cannot be rotated",
        ),
        (
            of("jamba", &[("ssm.inner_size", 127)]),
            "key \"jamba.ssm.inner_size\": it is not twice the embedding's length",
        ),
        (
            of(
                "glm5-next",
                &[glm[0], glm[1], ("attention.indexer.top_k", 6)],
            ),
            "key \"glm5-next.attention.indexer.top_k\": it does not come in whole pools",
        ),
        (
            of("nanbeige", &[("num_loops", 257)]),
            "key \"nanbeige.num_loops\": 2 layers cannot be run as often",
        ),
        (
            bailing(0, -1.0),
            "key \"bailingmoe3.kda.safe_gate\": it is not true with a bound below 0",
        ),
        (
            bailing(1, f32::NAN),
            "key \"bailingmoe3.kda.safe_gate\": it is not true with a bound below 0",
        ),
        (
            ratios(513),
            "key \"deepseek4.attention.compress_ratios\": it has more numbers than 512 layers need",
        ),
    ]);
}

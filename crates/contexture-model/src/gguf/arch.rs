//! The architectures that the engine has (llama.cpp as llama-cpp-2 0.1.160 brings it), and what each
//! is good for.

use super::error::{Fault, shown};

/// Whether models of an architecture write text, a token at a time.
pub(super) fn check(name: &str) -> Result<(), Fault> {
    if TEXT.contains(&name) {
        return Ok(());
    }
    match OTHER.iter().find(|(_, names)| names.contains(&name)) {
        Some((what, _)) => Err(Fault::NotForText {
            architecture: name.to_owned(),
            what,
        }),
        None => Err(Fault::UnknownArchitecture(shown(name))),
    }
}

/// Whether it keeps a state of fixed size instead of keys and values of every token.
pub(super) fn is_recurrent(name: &str) -> bool {
    RECURRENT.contains(&name)
}

#[rustfmt::skip]
const TEXT: [&str; 129] = [
    "afmoe", "apertus", "arcee", "arctic", "arwkv7", "baichuan", "bailingmoe", "bailingmoe2",
    "bailingmoe3", "bitnet", "bloom", "chameleon", "chatglm", "codeshell", "cogvlm", "cohere2",
    "cohere2moe", "command-r", "dbrx", "deci", "deepseek", "deepseek2", "deepseek2-ocr",
    "deepseek32", "deepseek4", "dots1", "dots3note", "ernie4_5", "ernie4_5-moe", "exaone",
    "exaone-moe", "exaone4", "falcon", "falcon-h1", "gemma", "gemma2", "gemma3", "gemma3n",
    "gemma4", "glm-dsa", "glm4", "glm4moe", "glm5-next", "gpt-oss", "gpt2", "gptneox", "granite",
    "granite_swa", "granitehybrid", "granitemoe", "graniteswitch", "grok", "grovemoe", "hrm_text",
    "hunyuan-dense", "hunyuan-moe", "hunyuan_vl", "hy_v3", "hy_v4", "internlm2", "jais", "jais2",
    "jamba", "kimi-k3", "kimi-linear", "laguna", "lfm2", "lfm2moe", "llama", "llama4", "maincoder",
    "mamba", "mamba2", "maple", "mellum", "mimo2", "minicpm", "minicpm3", "minimax-01",
    "minimax-m2", "minimax-m3", "mistral3", "mistral4", "mpt", "muse-glimmer", "nanbeige",
    "nemotron", "nemotron_h", "nemotron_h_moe", "olmo", "olmo2", "olmoe", "openelm", "orion",
    "paddleocr", "pangu-embedded", "phi2", "phi3", "phimoe", "plamo", "plamo2", "plamo3", "plm",
    "qwen", "qwen2", "qwen2moe", "qwen2vl", "qwen3", "qwen35", "qwen35moe", "qwen3moe", "qwen3next",
    "qwen3vl", "qwen3vlmoe", "qwen4exp", "refact", "rwkv6", "rwkv6qwen2", "rwkv7", "seed_oss",
    "smallthinker", "smollm3", "spark2_5", "stablelm", "starcoder", "starcoder2", "step35",
    "talkie", "xverse",
];

const RECURRENT: [&str; 6] = ["arwkv7", "mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7"];

/// What else there is, by what it is.
#[rustfmt::skip]
const OTHER: [(&str, &[&str]); 5] = [
    ("an encoder", &[
        "bert", "clef", "clip", "eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3",
        "llama-embed", "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe", "t5encoder",
    ]),
    ("a model with an encoder before its decoder", &["t5"]),
    ("a draft for another model", &["dflash", "eagle3", "gemma4-assistant"]),
    ("a diffusion model", &["dream", "llada", "llada-moe", "rnd1"]),
    ("a part of a model for sound", &["pockettts", "qwen3tts", "wavtokenizer-dec"]),
];

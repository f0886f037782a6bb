//! How fast we count, against the fastest exact counters there are: `cargo bench -p contexture-benches --features peers
//! --bench count`.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use std::time::Duration;

use contexture::tokens::{Bpe, Tokenizer};
use contexture_benches::{Bar, Times, asked, note, row, texts};

const RUNS: usize = 7;
/// As much of the texts as keeps the slowest side to a few seconds.
const BYTES: usize = 5 << 20;

const WORDS: &str = "智能 模型 消息 工具 结果 保留 遮盖 总结 预算 请求 历史 用户 系统 提示 文件 路径 错误 测试 修复 提交 \
                     我们 需要 决定 每次 告诉 什么 可以 已经 没有 因为 所以 然后 如果 或者 但是 代码 函数 返回 数据 网络";

/// Sentences of our making, none twice: what a counter has seen before it may remember.
fn chinese() -> Vec<String> {
    let words: Vec<&str> = WORDS.split_whitespace().collect();
    let mut state = 1u64;
    let mut next = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(state >> 40).unwrap_or(0) % below
    };
    let mut sentence = || -> String {
        let clause: String = (0..4 + next(9)).map(|_| words[next(words.len())]).collect();
        clause + ["，", "。", "：", "？"][next(4)]
    };
    (0..2_000)
        .map(|_| (0..8).map(|_| sentence()).collect())
        .collect()
}

fn main() {
    if !asked("count: throughput against other exact counters") {
        return;
    }
    let texts = texts();
    let total: usize = texts.iter().map(String::len).sum();
    // Every nth text, so that all sources are in it.
    let step = total.div_ceil(BYTES).max(1);
    let sample: Vec<&str> = texts.iter().step_by(step).map(String::as_str).collect();
    measure("transcripts", &sample, Bar::Least(0.9));
    let chinese = chinese();
    let chinese: Vec<&str> = chinese.iter().map(String::as_str).collect();
    measure("Chinese", &chinese, Bar::None);
}

fn measure(name: &str, texts: &[&str], bar: Bar) {
    let raw = tiktoken::get_encoding("o200k_base").unwrap();
    let other = bpe_openai::o200k_base();
    let ours = || texts.iter().map(|t| Bpe::O200k.count(t)).sum::<usize>();
    let tiktoken = || texts.iter().map(|t| raw.count(t)).sum::<usize>();
    let bpe_openai = || texts.iter().map(|t| other.count(t)).sum::<usize>();

    let differ = texts
        .iter()
        .filter(|t| {
            let count = Bpe::O200k.count(t);
            count != raw.encode(t).len() || count != other.count(t)
        })
        .count();
    let bytes: usize = texts.iter().map(|t| t.len()).sum();
    let (mut a, mut b, mut c) = <(Times, Times, Times)>::default();
    for _ in 0..RUNS {
        a.time(ours);
        b.time(tiktoken);
        c.time(bpe_openai);
    }
    let speed = |time: Duration| bytes as f64 / time.as_secs_f64() / 1e6;
    let (a, b, c) = (a.median(), b.median(), c.median());
    note(&format!(
        "{name}: {} texts, {bytes} bytes, counts differ in {differ}; MB/s: ours {:.1}, tiktoken {:.1}, \
         bpe-openai {:.1}",
        texts.len(),
        speed(a),
        speed(b),
        speed(c)
    ));
    // The fastest crate's time to ours is our throughput to its.
    row(
        &format!("throughput on {name}, fastest crate's : ours"),
        b.min(c),
        a,
        bar,
    );
}

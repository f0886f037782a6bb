//! What a turn cost, in one line.

use std::time::Duration;

use contexture_agent::Spent;

use super::{Paint, clip, thousands, width};

/// What a turn cost.
#[derive(Debug, Default)]
pub struct Cost {
    /// Tokens of its last request, by our count.
    pub input_tokens: usize,
    /// What the provider counted, over all requests.
    pub spent: Spent,
    pub took: Duration,
}

/// The cells of the bar.
const CELLS: usize = 12;

/// `━━━━━━━━━━━━ 2,431 of 32,000 tokens · 64 % cached · 120 out · 3.2 s`.
pub fn line(cost: &Cost, budget: usize, paint: Paint) -> String {
    let used = cost.input_tokens;
    let filled = (used * CELLS).div_ceil(budget.max(1)).min(CELLS);
    let colour = match used * 100 / budget.max(1) {
        0..60 => 71,
        60..85 => 179,
        _ => 173,
    };
    let bar = match paint.colour {
        true => format!(
            "{}{} ",
            paint.fg(colour, &"━".repeat(filled)),
            paint.fg(238, &"━".repeat(CELLS - filled))
        ),
        false => String::new(),
    };
    let mut parts = vec![format!(
        "{} of {} tokens",
        thousands(used),
        thousands(budget)
    )];
    let Spent {
        input_tokens,
        cached_tokens,
        output_tokens,
    } = cost.spent;
    if let Some(percent) = cached_tokens.saturating_mul(100).checked_div(input_tokens) {
        parts.push(format!("{percent} % cached"));
    }
    if output_tokens > 0 {
        let out = usize::try_from(output_tokens).unwrap_or(usize::MAX);
        parts.push(format!("{} out", thousands(out)));
    }
    parts.push(seconds(cost.took));
    let text = paint.dim(&parts.join(" · "));
    let room = paint.width.saturating_sub(1);
    let whole = format!("  {bar}{text}");
    if width(&whole) <= room {
        whole
    } else {
        clip(&format!("  {text}"), room)
    }
}

/// `40 ms`, `3.2 s`, `2 min 5 s`.
pub fn seconds(time: Duration) -> String {
    match time.as_millis() {
        0..1_000 => format!("{} ms", time.as_millis()),
        1_000..60_000 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{} min {} s", time.as_secs() / 60, time.as_secs() % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Paint = Paint {
        colour: false,
        width: 80,
    };

    #[test]
    fn a_line_says_what_is_known() {
        let cost = Cost {
            input_tokens: 2_431,
            spent: Spent {
                input_tokens: 100,
                cached_tokens: 64,
                output_tokens: 7,
            },
            took: Duration::from_millis(3_249),
        };
        let all = line(&cost, 32_000, PLAIN);
        assert_eq!(
            all,
            "  2,431 of 32,000 tokens · 64 % cached · 7 out · 3.2 s"
        );
        let narrow = line(
            &cost,
            32_000,
            Paint {
                colour: true,
                width: 40,
            },
        );
        assert!(
            width(&narrow) < 40 && narrow.contains("2,431 of 32,000"),
            "{narrow}"
        );
        let unknown = line(&Cost::default(), 0, PLAIN);
        assert_eq!(unknown, "  0 of 0 tokens · 0 ms");
    }

    #[test]
    fn the_bar_is_never_longer_than_it_is() {
        let paint = Paint {
            colour: true,
            ..PLAIN
        };
        for used in [0, 1, 31_999, 32_000, 64_000] {
            let cost = Cost {
                input_tokens: used,
                ..Cost::default()
            };
            let cells = line(&cost, 32_000, paint).matches('━').count();
            assert_eq!(cells, CELLS, "{used}");
        }
    }
}

//! The lines in which two texts differ.

/// A line of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// In both, next to a difference.
    Same(&'a str),
    Added(&'a str),
    Removed(&'a str),
    /// Lines in both that are left out.
    Skipped,
}

/// The lines in both that are shown around a difference.
const AROUND: usize = 2;
/// The most pairs of lines that are compared. Beyond that, all in between counts as replaced.
const MAX_PAIRS: usize = 4_000_000;

/// The differences between two texts, with a few lines around each.
pub fn between<'a>(before: &'a str, now: &'a str) -> Vec<Line<'a>> {
    let (old, new): (Vec<&str>, Vec<&str>) = (split(before), split(now));
    let begin = common(old.iter(), new.iter());
    let end = common(old[begin..].iter().rev(), new[begin..].iter().rev());
    let (old_middle, new_middle) = (&old[begin..old.len() - end], &new[begin..new.len() - end]);
    let mut all: Vec<Line<'a>> = old[..begin].iter().map(|line| Line::Same(line)).collect();
    if old_middle.len().saturating_mul(new_middle.len()) <= MAX_PAIRS {
        compare(old_middle, new_middle, &mut all);
    } else {
        all.extend(old_middle.iter().map(|line| Line::Removed(line)));
        all.extend(new_middle.iter().map(|line| Line::Added(line)));
    }
    all.extend(old[old.len() - end..].iter().map(|line| Line::Same(line)));
    near_differences(&all)
}

/// Lines by `\n` alone: another end of a line is shown as the character that it is.
fn split(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    text.strip_suffix('\n')
        .unwrap_or(text)
        .split('\n')
        .collect()
}

fn common<'a>(a: impl Iterator<Item = &'a &'a str>, b: impl Iterator<Item = &'a &'a str>) -> usize {
    a.zip(b).take_while(|(a, b)| a == b).count()
}

/// By the longest common subsequence.
fn compare<'a>(old: &[&'a str], new: &[&'a str], all: &mut Vec<Line<'a>>) {
    let width = new.len() + 1;
    // At `i * width + j`: the length for what follows `old[i]` and `new[j]`.
    let mut lengths = vec![0u32; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            lengths[i * width + j] = if old[i] == new[j] {
                lengths[(i + 1) * width + j + 1] + 1
            } else {
                lengths[(i + 1) * width + j].max(lengths[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            all.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if i < old.len()
            && (j == new.len() || lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])
        {
            all.push(Line::Removed(old[i]));
            i += 1;
        } else {
            all.push(Line::Added(new[j]));
            j += 1;
        }
    }
}

fn near_differences<'a>(all: &[Line<'a>]) -> Vec<Line<'a>> {
    let mut shown = vec![false; all.len()];
    for (n, line) in all.iter().enumerate() {
        if !matches!(line, Line::Same(_)) {
            let end = (n + AROUND + 1).min(all.len());
            shown[n.saturating_sub(AROUND)..end].fill(true);
        }
    }
    let mut out = Vec::new();
    for (line, shown) in all.iter().zip(shown) {
        if shown {
            out.push(*line);
        } else if !out.is_empty() && out.last() != Some(&Line::Skipped) {
            out.push(Line::Skipped);
        }
    }
    while out.last() == Some(&Line::Skipped) {
        out.pop();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(before: &str, now: &str) -> String {
        let lines = between(before, now).into_iter().map(|line| match line {
            Line::Same(text) => format!(" {text}"),
            Line::Added(text) => format!("+{text}"),
            Line::Removed(text) => format!("-{text}"),
            Line::Skipped => "~".to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn only_what_is_near_a_difference_is_shown() {
        assert_eq!(drawn("a\nb\n", "a\nb\n"), "");
        assert_eq!(drawn("", "a\nb\n"), "+a\n+b");
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let now = "1\n2\n3\n4\nfive\n6\n7\n8\n9\nten\n";
        assert_eq!(
            drawn(before, now),
            " 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+ten"
        );
        assert_eq!(
            drawn("x\n1\n2\n3\n4\n5\n6\ny\n", "1\n2\n3\n4\n5\n6\n"),
            "-x\n 1\n 2\n~\n 5\n 6\n-y"
        );
        // The end of a line in the way of another system is a difference.
        assert_eq!(drawn("a\n", "a\r\n"), "-a\n+a\r");
    }

    #[test]
    fn long_texts_take_bounded_time() {
        let before = "a\n".repeat(32_000);
        let now = "b\n".repeat(32_000);
        assert_eq!(between(&before, &now).len(), 64_000);
    }
}

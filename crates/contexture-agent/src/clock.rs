//! The clock, for entries and for people. Only hosts have one: the core is given its times.

use std::time::{Duration, SystemTime};

/// The time in RFC 3339, to the millisecond.
pub fn now() -> String {
    rfc3339(SystemTime::now())
}

/// A time in RFC 3339.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = since.as_secs();
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let milli = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// `3 min ago`.
pub fn ago(time: SystemTime) -> String {
    let past = SystemTime::now()
        .duration_since(time)
        .unwrap_or(Duration::ZERO)
        .as_secs();
    match past {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", past / 60),
        3_600..86_400 => format!("{} h ago", past / 3_600),
        _ => format!("{} d ago", past / 86_400),
    }
}

/// The date of a day since 1970, in the proleptic Gregorian calendar: years are counted from March,
/// so that the leap day is a year's last.
fn date(days: u64) -> (u64, u64, u64) {
    let from_march = days + 719_468;
    let (era, of_era) = (from_march / 146_097, from_march % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let at = |seconds| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_399), "2000-02-28T23:59:59.000Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00.000Z");
        assert_eq!(at(951_868_800), "2000-03-01T00:00:00.000Z");
        assert_eq!(at(1_794_700_800), "2026-11-15T00:00:00.000Z");
        assert_eq!(at(4_107_542_400), "2100-03-01T00:00:00.000Z");
    }
}

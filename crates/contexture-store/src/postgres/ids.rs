//! How an id stands in a column.
//!
//! PostgreSQL's text cannot hold U+0000, and an index cannot hold long text. `%00` stands for the
//! one, so `%25` for a `%`; of a long id there is `%#` and its hash, and the body has the id itself.

use std::borrow::Cow;

use contexture::EntryId;

use crate::files::lines::quick_id;

/// The longest that is kept as it is. An index takes about 2,700 bytes a row.
const LONGEST: usize = 1_000;

/// The id for a column. Two ids never share one.
pub fn encode(id: &EntryId) -> String {
    let column = id.as_str().replace('%', "%25").replace('\0', "%00");
    if column.len() > LONGEST {
        return format!("%#{}", blake3::hash(id.as_str().as_bytes()).to_hex());
    }
    column
}

/// The id of a column, with the body of its entry where that is needed.
pub fn decode(column: &str, body: Option<&str>) -> EntryId {
    let id = match body.filter(|_| column.starts_with("%#")) {
        Some(body) => quick_id(body.as_bytes()).unwrap_or(Cow::Borrowed(column)),
        None if column.contains('%') => Cow::Owned(column.replace("%00", "\0").replace("%25", "%")),
        None => Cow::Borrowed(column),
    };
    EntryId::from(id.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_column_cannot_hold_is_written_otherwise() {
        for (id, column) in [
            ("a", "a"),
            ("\0", "%00"),
            ("%00", "%2500"),
            ("%#", "%25#"),
            ("é %", "é %25"),
        ] {
            assert_eq!(encode(&id.into()), column);
            assert_eq!(decode(column, None).as_str(), id);
        }
    }

    proptest! {
        #[test]
        fn an_id_comes_back(id in "[%025#a\\x00é]{1,12}", times in 1usize..400) {
            let id = id.repeat(times);
            let body = serde_json::json!({ "id": id }).to_string();
            let column = encode(&EntryId::from(id.as_str()));
            prop_assert!(column.len() <= LONGEST && !column.contains('\0'));
            let back = decode(&column, Some(&body));
            prop_assert_eq!(back.as_str(), id);
        }
    }
}

#![allow(clippy::unwrap_used)]
use crate::prompt::render_str;
use serde_json::json;

fn render(source: &str) -> Result<String, crate::ContextError> {
    render_str(
        "mine",
        source,
        json!({"a": "x", "l": [1, 2], "m": {"k-1": 1, "b": 2}}),
    )
}

#[test]
fn ordinary_templates_pass() {
    for (source, text) in [
        ("plain { text } and {1}", "plain { text } and {1}"),
        ("{{ a }}{{- a -}} {{+ a +}}", "xxx"),
        (
            "{# a ~ b {{ #}{#- + -#}{{ '{{' }}{{ \"}} ~ %}\" }}",
            "{{}} ~ %}",
        ),
        (
            "{% for k, v in m | items %}{{ k }}={{ v }};{% endfor %}",
            "b=2;k-1=1;",
        ),
        (
            "{% for x in l %}{{ x }}{% if not loop.last %}-{% endif %}{% endfor %}",
            "1-2",
        ),
        (
            "{% if a == 'y' %}1{% elif l|length > 1 %}2{% else %}3{% endif %}",
            "2",
        ),
        ("{{ m | attr('k-1') }}{{ l.0 }}{{ a | upper }}\n", "11X"),
    ] {
        assert_eq!(render(source).as_deref(), Ok(text), "{source}");
    }
}

#[test]
fn what_could_grow_or_reach_out_is_refused() {
    for source in [
        "{% set a = 1 %}",
        "{%- set a %}{{ a }}{% endset %}",
        "{% with b = a %}{% endwith %}",
        "{% include 'x' %}",
        "{% import 'x' as y %}",
        "{% extends 'x' %}",
        "{% macro f() %}{% endmacro %}",
        "{% raw %}{% endraw %}",
        "{% filter upper %}{% endfilter %}",
        "{% autoescape true %}{% endautoescape %}",
        "{% for x in l recursive %}{{ loop(l) }}{% endfor %}",
        "{% for x in(l)recursive %}{% endfor %}",
        "{{ a ~ a }}",
        "{{ a + a }}",
        "{{ 'x' * 1000000 }}",
        "{{ 'x' ** 9 }}",
        "{{ [a, a] }}",
        "{{ {'a': a} }}",
        "{{ (a, a) }}",
        "{% for x in (a, a) %}{% endfor %}",
        "{% for x, y in (l, l) %}{% endfor %}",
        "{{ '}}' ~ a }}",
        "{# {{ \" #}{{ a ~ a }}{# \" }} #}",
        "{{ '\\'' ~ a }}",
        "{{ range(9) }}",
        "{{ a.upper() }}",
        "{{ a | replace('x', a) }}",
        "{{ a",
        "{# a",
        "{% if a %}",
        "{{ ( }} {{ a ~ a }} )",
    ] {
        assert!(render(source).is_err(), "{source}: {:?}", render(source));
    }
}

proptest::proptest! {
    /// The guard and the engine must agree on where tags end: what passes can fail, but it has
    /// no means to make a text out of nothing.
    #[test]
    fn no_mixture_grows(pieces in proptest::collection::vec(0..PIECES.len(), 0..24)) {
        let source: String = pieces.into_iter().map(|i| PIECES[i]).collect();
        if let Ok(text) = render(&source) {
            assert!(!text.contains("xx"), "{source} gave {text}");
        }
    }
}

/// The value of `a` is `x`, and every tag that prints is followed by a dot, so two of them side
/// by side can only come from an operator that got through.
const PIECES: [&str; 20] = [
    "{{ a }}.",
    "{{",
    "}}.",
    "{%",
    "%}",
    "{#",
    "#}",
    "\"",
    "'",
    "-",
    "+",
    "a ~ a",
    "a * 2",
    "a",
    " if ",
    "{% if a %}",
    "{% endif %}",
    "{% raw %}",
    "{% endraw %}",
    "(",
];

#[test]
fn depth_is_an_error_and_not_a_crash() {
    let deep = [
        format!("{{{{ a{} }}}}", ".b".repeat(100_000)),
        format!("{{{{ a{} }}}}", ".b".repeat(490)),
        format!("{{{{ {}a }}}}", "not ".repeat(240)),
        format!("{{{{ {}a{} }}}}", "(".repeat(490), ")".repeat(490)),
        format!("{{{{ a{} }}}}", "|trim".repeat(190)),
        format!("{}{}", "{% if a %}".repeat(499), "{% endif %}".repeat(499)),
        format!(
            "{}{}",
            "{% for a in l %}".repeat(499),
            "{% endfor %}".repeat(499)
        ),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(990)),
        "{{ a }}".repeat(1001),
        "x".repeat(1 << 20),
    ];
    for source in deep {
        // Some are legal and some are not; all must return.
        let _ = render(&source);
    }
}

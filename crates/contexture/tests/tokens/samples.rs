//! Texts of every kind an agent meets, written for these tests.

/// English prose.
pub const ENGLISH: &[&str] = &[
    "The harbour was quiet when we arrived. A few boats moved slowly against the tide, and somebody \
     on the far side was singing an old song that none of us could quite remember. We waited for the \
     ferry until noon, but it did not come, and so we walked along the shore to the next village.",
    "Please review the attached report before our meeting on Thursday. I would like to understand \
     why the numbers for the second quarter are lower than expected, and whether we should change \
     the plan for the rest of the year. If you have any questions, write to me or call the office.",
    "You are a helpful assistant that works in the user's terminal. Read the files you need before \
     you change anything. Explain what you are going to do, then do it, and run the tests at the \
     end. If a command fails, read the error message carefully and do not repeat the same command \
     without a reason. Never delete files that you did not create.",
    "I don't think that's what she meant. She said we'd have to leave by six, didn't she? It's a \
     long way, and there won't be any trains after ten o'clock at night.",
    "To find the length of the longest side, add the squares of the two shorter sides and take the \
     square root of the sum. This works for every triangle that has a right angle, and for no other.",
];

/// Code as people write it.
pub const CODE: &[&str] = &[
    "def parse_line(line):\n    \"\"\"Return the key and the value of one line, or None.\"\"\"\n    \
     if not line or line.startswith(\"#\"):\n        return None\n    key, _, value = \
     line.partition(\"=\")\n    return key.strip(), value.strip()\n\n\nfor line in open(path):\n    \
     result = parse_line(line)\n    if result is not None:\n        key, value = result\n        \
     config[key] = value\n",
    "fn total(items: &[Item]) -> u64 {\n    let mut sum = 0;\n    for item in items {\n        if \
     item.is_open() {\n            sum += item.count * item.price;\n        }\n    }\n    sum\n}\n",
    "async function load(id) {\n  const response = await fetch(`/api/users/${id}`);\n  if \
     (!response.ok) {\n    throw new Error(\"request failed: \" + response.status);\n  }\n  const \
     user = await response.json();\n  return { name: user.name, email: user.email };\n}\n",
    "#include <stdio.h>\n\nint main(int argc, char *argv[]) {\n    for (int i = 1; i < argc; i++) \
     {\n        printf(\"%d: %s\\n\", i, argv[i]);\n    }\n    return 0;\n}\n",
    "SELECT name, count(*) AS orders\nFROM users\nJOIN orders ON orders.user_id = users.id\nWHERE \
     orders.created > date('now', '-30 days')\nGROUP BY name\nORDER BY orders DESC\nLIMIT 10;\n",
    "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tvalues := []int{1, 2, 3}\n\tfor i, value := \
     range values {\n\t\tfmt.Println(i, value)\n\t}\n}\n",
];

/// Everything else, by class.
pub const CLASSES: &[(&str, &[&str])] = &[
    (
        "short",
        &[
            "user",
            "assistant",
            "system",
            "tool",
            "developer",
            "a",
            "I",
            "é",
            "日",
            "🦊",
            "0",
            "\n",
            " ",
            ".",
            "ok",
            "id",
            "search",
            "get_user_details",
            "call_AbC123xYz",
            "toolu_01A09q90qw",
            "chatcmpl-9aXyZ",
            "str_replace_based_edit_tool",
            "mcp__github__create_pull_request",
            "fs/read_text_file",
            "listDirectoryRecursively",
            "X-Request-Id",
        ],
    ),
    (
        "minified",
        &[
            "!function(e,t){\"object\"==typeof exports?module.exports=t():e.n=t()}(this,function(){var \
             r=[],n=0;return{p:function(e){r[n++]=e},l:function(){return n}}});",
            "a{b:c}.d>e~f{g:h!important}@media(i:j){k{l:0 1px 2px#fff}}",
        ],
    ),
    (
        "indentation",
        &[
            "{\n                {\n                                {\n                    }\n}\n",
            "\t\t\t\tif\t(x)\n\t\t\t\t\t\treturn;\n\n\n\n\tend",
            "a:\n  b:\n    - c:\n        d: e\n      f:\n          - g\n",
        ],
    ),
    (
        "punctuation",
        &[
            "!@#$%^&*()_+-=[]{}|;':\",./<>?`~",
            "=====>>>>>-----<<<<<",
            "))))]]]]}}}};;;;",
            "|---|:---:|---|\n| * | ** | *** |\n",
            "=-=-=-=-=-=-=-=-=-=-",
            "\\\\\\\"\\\"\\n\\t\\\\",
        ],
    ),
    (
        "json",
        &[
            r#"{"id":"7f3","ok":true,"items":[{"name":"nut","price":0.25,"tags":["a","b"]},null,-1e9]}"#,
            r#"{"command":"cd /src && grep -rn \"TODO\" --include=*.rs . | head -20","timeout":30}"#,
            "{\n  \"type\": \"object\",\n  \"properties\": {\n    \"path\": { \"type\": \"string\" }\n  },\
             \n  \"required\": [\"path\"]\n}",
            r#""{\"a\":\"{\\\"b\\\":\\\"\\\\u4e2d\\\"}\"}""#,
        ],
    ),
    (
        "chinese",
        &[
            "今天天气很好，我们一起去公园散步，然后在湖边的小店里喝茶聊天。",
            "請先閱讀說明書，再開啟電源。若有問題，請聯絡客服人員。",
            "龘靐齉爩鱻麤",
            "运行cargo test，查看3个error。",
        ],
    ),
    (
        "japanese",
        &[
            "昨日は雨が降っていたので、家で本を読んで過ごしました。",
            "コンピューターのプログラムをインストールしてください。",
            "ｶﾀｶﾅ　全角ＡＢＣ１２３",
        ],
    ),
    (
        "korean",
        &[
            "어제는 비가 와서 집에서 책을 읽으며 시간을 보냈습니다.",
            "뷁쀍쒧 ㅋㅋㅋㅋㅋ ㅠㅠ",
        ],
    ),
    (
        "scripts",
        &[
            "كان الطقس جميلا اليوم فذهبنا إلى الحديقة.",
            "मौसम अच्छा था इसलिए हम बगीचे में गए।",
            "วันนี้อากาศดีมากเราจึงไปเดินเล่นที่สวน",
            "Сегодня хорошая погода, и мы пошли в парк.",
            "Σήμερα ο καιρός είναι καλός.",
            "היום מזג האוויר נאה.",
            "დღეს კარგი ამინდია.",
            "Այսօր լավ եղանակ է։",
            "ዛሬ አየሩ ጥሩ ነው።",
            "আজ আবহাওয়া ভালো।",
            "இன்று வானிலை நன்றாக உள்ளது.",
            "Hôm nay thời tiết đẹp nên chúng tôi đi dạo.",
            "Příliš žluťoučký kůň úpěl ďábelské ódy.",
        ],
    ),
    (
        "emoji",
        &[
            "👨‍👩‍👧‍👦👩🏽‍💻🏳️‍🌈🇩🇪🇯🇵",
            "✅ done ❌ failed ⚠️ careful 🚀🚀🚀",
            "1️⃣2️⃣3️⃣",
            "😀😃😄😁😆😅🤣😂🙂🙃🫠",
        ],
    ),
    (
        "digits",
        &[
            "3141592653589793238462643383279502884197",
            "1,234,567.89",
            "2024-05-15T15:00:00.123456Z",
            "0 1 2 3 4 5 6 7 8 9",
            "17 \n204 \n8 \n391 \n",
            "127.0.0.1:8080 10.0.0.255",
            "0000000000000000",
            "1.0e-10 0x7fff 1_000_000 12:34:56",
        ],
    ),
    (
        "base64",
        &[
            "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO",
            "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        ],
    ),
    (
        "hex",
        &[
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "DEADBEEF 0BADF00D CAFEBABE",
            "de ad be ef 00 11 22 33 ff fe fd fc",
            "00000000: 7f45 4c46 0201 0100 0000 0000 0000 0000  .ELF............",
        ],
    ),
    (
        "uuids",
        &[
            "123e4567-e89b-12d3-a456-426614174000\nf47ac10b-58cc-4372-a567-0e02b2c3d479",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        ],
    ),
    (
        "diffs",
        &[
            "diff --git a/src/lib.rs b/src/lib.rs\nindex 83db48f..bf269f4 100644\n--- a/src/lib.rs\n+++ \
             b/src/lib.rs\n@@ -12,7 +12,7 @@ impl Foo {\n     fn bar(&self) {\n-        self.x += 1;\n+   \
                  self.x -= 1;\n     }\n",
        ],
    ),
    (
        "ansi",
        &[
            "\u{1b}[0;31merror\u{1b}[0m\u{1b}[1m: cannot find\u{1b}[0m\r\n",
            "\u{1b}[2K\u{1b}[1G\u{1b}[38;5;196m█▉▊▋▌▍▎▏\u{1b}[0m 42% ⠋⠙⠹⠸ │├──└──┼",
        ],
    ),
    (
        "whitespace",
        &[
            "          ",
            "\n\n\n\n\n\n\n\n",
            "\t\t\t\t\t\t\t\t",
            "\r\n\r\n\r\n",
            " \n \n\t\n  \n",
            "\u{a0}\u{3000}\u{2003}",
        ],
    ),
    (
        "repeats",
        &[
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "AAAAAAAAAAAAAAAAAAAAAAAA",
            "................",
            "----------------",
            "################",
            "hahahahahahahaha",
            "nonononono",
            "ééééééééé",
            "哈哈哈哈哈哈",
        ],
    ),
    (
        "noise",
        &[
            "qxzjvkwpfhbgm trnslkdqpw zxqjv",
            "QZXJ VKWP FHBG",
            "aBcDeFgHiJkLmNoP",
            "\u{fffd}\u{fffd}\u{0}\u{1}\u{7f}",
            "Ã©Ã¨Â°â€œÃ¼",
            "z̷̢a̵l̶g̸o̴",
            "\u{202e}\u{200b}\u{feff}\u{ad}",
            "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟙𝟚𝟛",
        ],
    ),
];

/// All of them, with their class.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let rest = CLASSES
        .iter()
        .flat_map(|(class, texts)| texts.iter().map(|t| (*class, *t)));
    let prose = ENGLISH.iter().map(|t| ("english", *t));
    prose.chain(CODE.iter().map(|t| ("code", *t))).chain(rest)
}

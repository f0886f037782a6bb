//! Tensors that are refused.

use crate::gguf::writer::{F16, F32, Gguf, Q4_0, Tensor, Value};
use crate::gguf::{read, refused};

fn first(change: impl FnOnce(&mut Tensor)) -> Gguf {
    Gguf::llama().first(change)
}

fn last(change: impl FnOnce(&mut Tensor)) -> Gguf {
    Gguf::llama().last(change)
}

#[test]
fn what_is_wrong_with_a_tensor_is_said() {
    // Where the list of tensors begins, and where what follows the names in it does.
    let list = {
        let mut file = Gguf::llama();
        file.tensors.clear();
        file.header().len()
    };
    let named = list + 8 + "token_embd.weight".len();
    let at = |place: &str, byte: usize, what: &str| {
        let (thousands, rest) = (byte / 1000, byte % 1000);
        let byte = if thousands > 0 {
            format!("{thousands},{rest:03}")
        } else {
            rest.to_string()
        };
        format!("{place} (byte {byte}): {what}")
    };
    let of_first =
        |beyond: usize, what: &str| at("tensor \"token_embd.weight\"", named + beyond, what);
    refused([
        (
            first(|t| t.name.clear()),
            &at("tensor 1", list + 8, "its name is empty"),
        ),
        (
            first(|t| t.name = vec![b'x'; 64]),
            &at(
                "tensor 1",
                list + 8,
                "a string has 64 bytes, and 63 are possible",
            ),
        ),
        (
            first(|t| t.name = vec![0xff]),
            &at("tensor 1", list + 9, "its name is not valid UTF-8"),
        ),
        (
            first(|t| t.name = b"a\0b".to_vec()),
            &at("tensor 1", list + 11, "its name has a control character"),
        ),
        (
            first(|t| t.dimensions.clear()),
            &of_first(4, "it has 0 dimensions, and 1 to 4 are possible"),
        ),
        (
            first(|t| t.dimensions = vec![1; 5]),
            &of_first(4, "it has 5 dimensions, and 1 to 4 are possible"),
        ),
        (
            first(|t| t.dimensions[1] = 0),
            &of_first(20, "one of its dimensions is 0"),
        ),
        (
            first(|t| t.dimensions[1] = u64::MAX),
            &of_first(20, "it has more elements than can be counted"),
        ),
        (
            first(|t| t.dimensions = vec![1 << 32, 1 << 31]),
            &of_first(20, "it has more elements than can be counted"),
        ),
        (
            first(|t| t.dimensions[0] = 63),
            &of_first(
                24,
                "its rows have 63 elements, and those of q4_0 come in blocks of 32",
            ),
        ),
        (
            first(|t| t.number = 4),
            &of_first(24, "its type has the number 4, which no type in use has"),
        ),
        (
            first(|t| t.number = 31),
            &of_first(24, "its type has the number 31, which no type in use has"),
        ),
        (
            first(|t| t.number = 43),
            &of_first(24, "its type has the number 43, which no type in use has"),
        ),
        (
            first(|t| (t.number, t.dimensions) = (F32, vec![1 << 31, 1 << 31])),
            &of_first(24, "it has more bytes than can be counted"),
        ),
    ]);
}

#[test]
fn the_engine_gets_no_tensor_that_it_cannot_compute_with() {
    let with = |number, dimensions: &[u64], bytes| {
        Gguf::llama().tensor("blk.0.ffn_norm.weight", dimensions, number, bytes)
    };
    for (file, words) in [
        (
            with(F16, &[64], 128),
            "weights of 1 dimension cannot be of type f16",
        ),
        (
            with(Q4_0, &[64], 36),
            "weights of 1 dimension cannot be of type q4_0",
        ),
        (
            with(15, &[256, 2], 292 * 2),
            "weights of several dimensions cannot be of type q8_K",
        ),
        (
            with(24, &[64, 2], 128),
            "weights of several dimensions cannot be of type i8",
        ),
        (
            with(26, &[64, 2], 512),
            "weights of several dimensions cannot be of type i32",
        ),
    ] {
        let error = read(&file.bytes()).unwrap_err().to_string();
        assert!(error.ends_with(words), "{error}");
    }
    let file = Gguf::llama().tensor("blk.0.ffn_gate_tid2eid.weight", &[4, 12], 26, 4 * 4 * 12);
    read(&file.bytes()).unwrap();
}

#[test]
fn tensors_lie_one_behind_the_other() {
    let unaligned = {
        let mut file = Gguf::llama().with("general.alignment", Value::U32(8));
        file.alignment = 8;
        // So long that the header ends eight bytes before a multiple of 32.
        let odd = (0..32).map(|n| {
            file.clone()
                .with("general.padding", crate::gguf::writer::text(&"x".repeat(n)))
        });
        let mut odd = odd.filter(|file| file.header().len().next_multiple_of(8) % 32 == 24);
        odd.next().unwrap()
    };
    let begins = unaligned.header().len().next_multiple_of(8);
    let begins = format!("{},{:03}", begins / 1000, begins % 1000).replace("0,", "");
    refused([
        (
            last(|t| t.offset = Some(33)),
            "tensor \"blk.0.attn_q.weight\": it begins at byte 33, which is no multiple of 32",
        ),
        (
            last(|t| t.offset = Some(448)),
            "tensor \"blk.0.attn_q.weight\": it begins at byte 448, inside of another tensor",
        ),
        (
            last(|t| t.offset = Some(736)),
            "tensor \"blk.0.attn_q.weight\": it begins at byte 736, and not behind the tensor before it, at 704",
        ),
        (
            last(|t| t.offset = Some(u64::MAX - 31)),
            "tensor \"blk.0.attn_q.weight\": it begins at byte 18,446,744,073,709,551,584, and not behind the \
             tensor before it, at 704",
        ),
        (
            unaligned,
            &format!(
                "tensor \"token_embd.weight\": it lies at byte {begins} of the file, and the engine needs a multiple of 32"
            ),
        ),
    ]);
    let twice = Gguf::llama().tensor("output_norm.weight", &[64], F32, 256);
    let error = read(&twice.bytes()).unwrap_err().to_string();
    assert!(
        error.starts_with("tensor \"output_norm.weight\" (byte "),
        "{error}"
    );
    assert!(error.ends_with("): it is there twice"), "{error}");
}

#[test]
fn the_data_must_be_there() {
    let more = |t: &mut Tensor| t.dimensions = vec![64, 1_000_000_064];
    refused([
        (
            last(more),
            "the file ends 128,000,000,000 bytes early: was it downloaded completely?",
        ),
        (
            first(|t| (t.dimensions, t.bytes) = (vec![64, 13], 13 * 36)),
            "tensor \"token_embd.weight\": it has 13 rows for 12 tokens",
        ),
        (
            first(|t| t.name = b"embeddings.weight".to_vec()),
            "tensor \"token_embd.weight\": it is missing",
        ),
    ]);
    let mut none = Gguf::llama();
    none.tensors.clear();
    refused([(none, "tensor \"token_embd.weight\": it is missing")]);
}

//! A real model.

use contexture_model::gguf::Header;

use crate::small_model::weights;

// needs: model
#[test]
fn a_real_model_is_read_with_its_values() {
    let Some(path) = weights() else { return };
    let header = Header::of_file(&path).unwrap();
    assert_eq!(header.architecture, "llama");
    assert_eq!(header.parameters(), 134_515_008);
    assert_eq!(header.context_length, 8192);
    assert_eq!(header.block_count, 30);
    assert_eq!(header.embedding_length, 576);
    assert_eq!(header.head_count, [9; 30]);
    assert_eq!(header.head_count_kv, [3; 30]);
    assert_eq!(header.kv_bytes_per_token(), 30 * 3 * (64 + 64) * 2);
    assert_eq!(header.tokenizer.model, "gpt2");
    assert_eq!(header.tokenizer.tokens, 49_152);
    assert!(header.chat_template.unwrap().contains("<|im_start|>"));
    assert!(
        header
            .tensors
            .iter()
            .any(|tensor| tensor.type_name == "q4_1")
    );
    let last = header.tensors.last().unwrap();
    let len = path.metadata().unwrap().len();
    assert_eq!((last.offset + last.bytes).next_multiple_of(32), len);
}

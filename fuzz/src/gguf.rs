//! What must hold for any bytes that are read as a GGUF file. Apart from the other targets, because it
//! needs the crate of the models: the seeds run in that crate's tests (`tests/gguf/seeds.rs`).

use std::io::Cursor;

use contexture_model::gguf::Header;

/// A header is read or refused, in bounded room, and whatever is read lies inside the file.
pub fn gguf(data: &[u8]) {
    let len = data.len() as u64;
    let header = match Header::read(&mut Cursor::new(data), len) {
        Ok(header) => header,
        Err(error) => {
            assert!(error.to_string().len() < 2_000 && !error.hint().is_empty());
            return;
        }
    };
    let again = Header::read(&mut Cursor::new(data), len);
    assert_eq!(again.as_ref(), Ok(&header));
    let mut end = 0;
    for tensor in &header.tensors {
        assert!(tensor.offset >= end && tensor.elements() > 0);
        end = tensor.offset + tensor.bytes;
        assert!(end <= len);
    }
    assert!(header.weight_bytes() <= len);
    assert_eq!(header.head_count.len(), header.block_count as usize);
    assert_eq!(header.head_count_kv.len(), header.block_count as usize);
    assert!(header.tokenizer.tokens > 0 && u64::from(header.tokenizer.tokens) * 8 <= len);
    header.parameters();
    header.kv_bytes_per_token();
    // Any byte less, and it is refused.
    let less = &data[..end as usize - 1];
    assert!(Header::read(&mut Cursor::new(less), end - 1).is_err());
}

//! The bytes of an object, which another build may read after an upgrade of the application.

use crate::{Buffer, write_object};

#[test]
fn an_object_has_these_bytes() {
    let value = ("ab", Buffer::from(vec![1u16, 0x203]), Buffer::from(vec![-1.5f64]));
    let object = write_object(&value).unwrap().map().unwrap();
    let mut expected = Vec::new();
    expected.extend(b"COHABOBJ");
    expected.extend([1, 0, 0, 0, 2, 0, 0, 0]);
    expected.extend(200u64.to_le_bytes());
    expected.extend(5u64.to_le_bytes());
    for (place, length, element) in [(128u64, 4u64, 2u32), (192, 8, 8)] {
        expected.extend(place.to_le_bytes());
        expected.extend(length.to_le_bytes());
        expected.extend(element.to_le_bytes());
        expected.extend(element.to_le_bytes());
    }
    expected.extend(b"\x02ab\x00\x01");
    expected.resize(128, 0);
    expected.extend([1, 0, 3, 2]);
    expected.resize(192, 0);
    expected.extend((-1.5f64).to_le_bytes());
    assert_eq!(&*object, expected);
}

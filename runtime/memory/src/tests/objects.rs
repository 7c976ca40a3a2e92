//! Values become objects and come back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use proptest::prelude::*;
use serde::{Deserialize, Serialize, Serializer};

use super::kit::{Dataset, Shard, dataset, sealed};
use crate::{
    BUFFER_ALIGNMENT, Buffer, FreshMemory, MemoryError, ObjectError, ObjectWriter, read_object, write_object,
};

fn round_trip(value: &Dataset) -> Dataset {
    let writer = ObjectWriter::new(value).unwrap();
    let object = writer.write(FreshMemory::allocate(writer.bytes()).unwrap()).unwrap();
    assert_eq!(object.bytes(), writer.bytes());
    read_object(&object.map().unwrap()).unwrap()
}

#[test]
fn nested_values_with_several_buffers_come_back() {
    let read = round_trip(&dataset());
    assert_eq!(read, dataset());
    assert!(read.inputs.is_shared() && !dataset().inputs.is_shared());
    assert_eq!(round_trip(&read), dataset(), "windows are written like what they were made of");
}

#[test]
fn buffers_are_aligned_to_64_bytes_and_not_copied() {
    let mapping = write_object(&dataset()).unwrap().map().unwrap();
    let read: Dataset = read_object(&mapping).unwrap();
    let inside = mapping.as_ptr_range();
    let mut places = vec![read.inputs.as_ptr() as usize, read.labels.as_ref().unwrap().as_ptr() as usize];
    for shard in &read.shards {
        match shard {
            Shard::Dense { rows, .. } => places.push(rows.as_ptr() as usize),
            Shard::Counts(counts, empty) => {
                places.extend([counts.as_ptr() as usize, empty.as_ptr() as usize]);
            }
            Shard::Empty => {}
        }
    }
    assert_eq!(places.len(), 5);
    for place in places {
        assert!(place.is_multiple_of(BUFFER_ALIGNMENT));
        assert!((inside.start as usize..=inside.end as usize).contains(&place));
    }
}

#[test]
fn a_buffer_keeps_its_mapping() {
    let words: Buffer<u32> = (0..5000).collect();
    let read: Buffer<u32> = read_object(&write_object(&words).unwrap().map().unwrap()).unwrap();
    let clone = read.clone();
    assert_eq!(clone.as_ptr(), read.as_ptr());
    drop(read);
    assert_eq!(clone, words);
}

#[test]
fn outside_of_objects_a_buffer_is_a_sequence() {
    let numbers = vec![1u32, 2, 300_000];
    let buffer = Buffer::from(numbers.clone());
    assert_eq!(serde_json::to_string(&buffer).unwrap(), "[1,2,300000]");
    assert_eq!(serde_json::from_str::<Buffer<u32>>("[1,2,300000]").unwrap(), buffer);
    let encoded = cohabit_wire::codec::encode(&buffer).unwrap();
    assert_eq!(encoded, cohabit_wire::codec::encode(&numbers).unwrap());
    assert_eq!(cohabit_wire::codec::decode::<Buffer<u32>>(&encoded).unwrap(), buffer);
}

/// A type that writes itself as JSON inside of an object.
#[derive(Debug, PartialEq)]
struct AsJson(Buffer<u32>);

impl Serialize for AsJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&serde_json::to_string(&self.0).unwrap())
    }
}

impl<'de> Deserialize<'de> for AsJson {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<AsJson, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(AsJson(serde_json::from_str(&text).unwrap()))
    }
}

#[test]
fn json_inside_of_an_object_has_its_numbers() {
    let value = (AsJson(vec![1, 2].into()), Buffer::from(vec![3u8]));
    let read: (AsJson, Buffer<u8>) = read_object(&write_object(&value).unwrap().map().unwrap()).unwrap();
    assert_eq!(read, value);
    assert!(read.1.is_shared() && !read.0.0.is_shared());
}

/// A type whose code writes an object, or panics, while it is written.
struct Nested(Buffer<u8>);

impl Serialize for Nested {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        assert!(!self.0.is_empty(), "nothing to write");
        let inner = write_object(&self.0).unwrap().map().unwrap();
        assert_eq!(read_object::<Buffer<u8>>(&inner).unwrap(), self.0);
        (inner.to_vec(), &self.0).serialize(serializer)
    }
}

#[test]
fn objects_are_written_inside_of_each_other_and_after_a_panic() {
    let bytes = Buffer::from(vec![1u8, 2]);
    assert!(catch_unwind(AssertUnwindSafe(|| write_object(&Nested(Buffer::default())))).is_err());
    assert_eq!(serde_json::to_string(&bytes).unwrap(), "[1,2]");
    assert_eq!(cohabit_wire::codec::encode(&bytes).unwrap().len(), 3, "no object is written any more");
    let read: (Vec<u8>, Buffer<u8>) =
        read_object(&write_object(&Nested(bytes.clone())).unwrap().map().unwrap()).unwrap();
    assert_eq!(read.1, bytes);
    assert_eq!(read_object::<Buffer<u8>>(&sealed(&read.0).map().unwrap()).unwrap(), bytes);
}

#[test]
fn an_object_of_another_type_is_refused() {
    let object = write_object(&(Buffer::from(vec![1u32, 2]), Buffer::from(vec![3u8]))).unwrap();
    let mapping = object.map().unwrap();
    let refused = read_object::<(Buffer<u64>, Buffer<u8>)>(&mapping).unwrap_err().to_string();
    assert!(refused.contains("elements of 4 aligned to 4, not of 8 aligned to 8"), "{refused}");
    assert!(matches!(read_object::<(u8, Buffer<u32>)>(&mapping), Err(ObjectError::OtherType(_))));
    let refused = read_object::<(u8, u8)>(&mapping).unwrap_err().to_string();
    assert!(refused.ends_with("it has 0 buffers of 2"), "{refused}");
    assert!(matches!(read_object::<String>(&mapping), Err(ObjectError::OtherType(_))));
}

#[test]
fn an_object_is_written_into_memory_of_its_size_alone() {
    let writer = ObjectWriter::new("text").unwrap();
    for bytes in [writer.bytes() - 1, writer.bytes() + 1] {
        let refused = writer.write(FreshMemory::allocate(bytes).unwrap());
        assert!(matches!(refused, Err(MemoryError::WrongSize { .. })), "{refused:?}");
    }
    let object = writer.write(FreshMemory::allocate(writer.bytes()).unwrap()).unwrap();
    assert_eq!(read_object::<String>(&object.map().unwrap()).unwrap(), "text");
}

#[test]
fn a_change_of_a_header_is_refused_unless_it_is_a_length_that_fits() {
    let object = write_object(&dataset()).unwrap().map().unwrap().to_vec();
    let entries = 5 * 24;
    for at in 0..32 + entries {
        for bit in 0..8 {
            let mut changed = object.clone();
            changed[at] ^= 1 << bit;
            let read = read_object::<Dataset>(&sealed(&changed).map().unwrap());
            // Some bytes more or less of padding belong to a buffer.
            let is_length = at >= 32 && (8..16).contains(&((at - 32) % 24));
            assert!(read.is_err() || is_length && read.unwrap() != dataset(), "bit {bit} of byte {at}");
        }
    }
    for length in 0..200 {
        assert!(read_object::<Dataset>(&sealed(&object[..length]).map().unwrap()).is_err());
    }
}

fn datasets() -> impl Strategy<Value = Dataset> {
    let shard = prop_oneof![
        Just(Shard::Empty),
        (any::<Vec<[f64; 2]>>(), any::<i128>())
            .prop_map(|(rows, weight)| Shard::Dense { rows: rows.into(), weight }),
        (any::<Vec<u16>>(), any::<Vec<i64>>()).prop_map(|(a, b)| Shard::Counts(a.into(), b.into())),
    ];
    let parts = (any::<String>(), any::<Vec<f32>>(), proptest::collection::vec(shard, 0..9));
    (parts, any::<Option<Vec<u8>>>()).prop_map(|((name, inputs, shards), labels)| Dataset {
        name,
        inputs: inputs.into(),
        shards,
        labels: labels.map(Buffer::from),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_value_comes_back_and_has_the_computed_size(value in datasets()) {
        prop_assert_eq!(round_trip(&value), value);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
        prop_assert!(read_object::<Dataset>(&sealed(&bytes).map().unwrap()).is_err());
    }

    #[test]
    fn arbitrary_bytes_behind_a_good_beginning_never_panic(
        mut bytes in any::<Vec<u8>>(), buffers in 0u32..4, body in 0u64..200
    ) {
        let length = 32 + bytes.len() as u64;
        let numbers = [&1u32.to_le_bytes()[..], &buffers.to_le_bytes(), &length.to_le_bytes()].concat();
        bytes.splice(0..0, [b"COHABOBJ", &numbers[..], &body.to_le_bytes()].concat());
        // What is read depends on the bytes.
        let _ = read_object::<Dataset>(&sealed(&bytes).map().unwrap());
    }

    #[test]
    fn changed_objects_never_panic(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut object = write_object(&dataset()).unwrap().map().unwrap().to_vec();
        let at = at.index(object.len());
        object[at] = byte;
        // A change of a number gives another value.
        let _ = read_object::<Dataset>(&sealed(&object).map().unwrap());
    }
}

//! Makes values of any type that serde can decode, until each variant of each enum in it was made once.
//!
//! It is a deserializer without input: it counts upwards for numbers and strings, so that no two fields of a
//! value are alike, gives every `Option` a value and every list one element, and picks of each enum the
//! variant that was picked least. So the bytes of its values change whenever a field or variant is added,
//! removed, moved, or changes its type.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::U32Deserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};

/// Values of a type that has all its variants among them.
pub(crate) fn samples<T: DeserializeOwned>() -> Vec<T> {
    let mut sampler = Sampler::default();
    let (mut samples, mut barren) = (Vec::new(), 0);
    // An enum within an enum is reached only now and then.
    while barren < 2_000 {
        (sampler.count, sampler.depth, sampler.is_new) = (0, 0, false);
        let value = T::deserialize(&mut sampler).expect("a value of any type can be made");
        barren = if sampler.is_new { 0 } else { barren + 1 };
        if sampler.is_new || samples.is_empty() {
            samples.push(value);
        }
    }
    samples
}

#[derive(Default)]
struct Sampler {
    /// The last number that was given out.
    count: u64,
    /// How many enums the present one is within: the outermost is told apart from those inside.
    depth: u32,
    /// The outermost variant that is being made.
    outermost: u32,
    /// How often each variant was picked, by the enum.
    picks: BTreeMap<String, Vec<u32>>,
    /// Whether the value has a variant that no earlier one had.
    is_new: bool,
}

impl Sampler {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// The variant of this enum that was picked least. Results are told apart by the outermost variant.
    fn pick(&mut self, name: &str, variants: usize) -> u32 {
        let key = if name == "Result" { format!("{name} in {}", self.outermost) } else { name.to_owned() };
        let picks = self.picks.entry(key).or_insert_with(|| vec![0; variants]);
        let least = (0..variants).min_by_key(|variant| picks[*variant]).expect("an enum has variants");
        self.is_new |= picks[least] == 0;
        picks[least] += 1;
        least as u32
    }
}

#[derive(Debug)]
pub(crate) struct SampleError(String);

impl fmt::Display for SampleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SampleError {}

impl serde::de::Error for SampleError {
    fn custom<T: fmt::Display>(message: T) -> SampleError {
        SampleError(message.to_string())
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
            visitor.$visit(self.next() as $type)
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Sampler {
    type Error = SampleError;

    numbers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64, deserialize_u128 visit_u128 u128,
        deserialize_f32 visit_f32 f32, deserialize_f64 visit_f64 f64
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, SampleError> {
        Err(SampleError::custom("a type without a shape of its own does not travel"))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        visitor.visit_bool(true)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        visitor.visit_char('c')
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        let text = format!("t{}", self.next());
        visitor.visit_string(text)
    }

    /// A UUID, the only thing that asks for bytes of a given length.
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        let byte = self.next() as u8;
        visitor.visit_bytes(&[byte; 16])
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        let byte = self.next() as u8;
        visitor.visit_byte_buf(vec![byte; 3])
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SampleError> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SampleError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        visitor.visit_seq(Elements { sampler: self, left: 1 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, SampleError> {
        visitor.visit_seq(Elements { sampler: self, left: length })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, SampleError> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SampleError> {
        visitor.visit_map(Elements { sampler: self, left: 1 })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SampleError> {
        self.deserialize_tuple(fields.len(), visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SampleError> {
        let variant = self.pick(name, variants.len());
        if self.depth == 0 {
            self.outermost = variant;
        }
        self.depth += 1;
        let value = visitor.visit_enum(Variant { sampler: self, variant })?;
        Ok(value)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, SampleError> {
        Err(SampleError::custom("fields travel by position"))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, SampleError> {
        Err(SampleError::custom("nothing that travels is ignored"))
    }
}

struct Elements<'a> {
    sampler: &'a mut Sampler,
    left: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = SampleError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SampleError> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.sampler).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> MapAccess<'de> for Elements<'_> {
    type Error = SampleError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, SampleError> {
        self.next_element_seed(seed)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, SampleError> {
        seed.deserialize(&mut *self.sampler)
    }
}

struct Variant<'a> {
    sampler: &'a mut Sampler,
    variant: u32,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = SampleError;
    type Variant = &'a mut Sampler;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, &'a mut Sampler), SampleError> {
        let variant: U32Deserializer<SampleError> = self.variant.into_deserializer();
        Ok((seed.deserialize(variant)?, self.sampler))
    }
}

impl<'de> VariantAccess<'de> for &mut Sampler {
    type Error = SampleError;

    fn unit_variant(self) -> Result<(), SampleError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, SampleError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, SampleError> {
        self.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SampleError> {
        self.deserialize_tuple(fields.len(), visitor)
    }
}

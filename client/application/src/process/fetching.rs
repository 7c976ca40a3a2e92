//! Values of references and of large answers, from wherever they are; and large values to the store.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use cohabit_application_core::{CallError, HeldId, ObjectId, ObjectValue, StoredObject};
use cohabit_memory::ObjectWriter;
use futures::stream::{StreamExt, TryStreamExt, iter};
use serde::de::{DeserializeOwned, DeserializeSeed};

use super::hold::{CarriedHandles, Hold};
use super::member_process::MemberProcess;
use super::reference_table::UnknownValue;
use super::running_task::{CalleeKind, StoreWait, UnendedCall};
use crate::values::{ValueBytes, held};

/// So many values of arguments are fetched at a time.
const FETCHES_AT_ONCE: usize = 16;

/// The bytes of a value, and the handles in it as long as it is decoded.
#[derive(Debug)]
pub(crate) struct FetchedValue {
    bytes: ValueBytes,
    _carried: CarriedHandles,
}

/// Values of references in arguments.
pub(crate) type FetchedValues = HashMap<ObjectId, FetchedValue>;

impl FetchedValue {
    /// A value that was here.
    pub(crate) const fn inline(value: Bytes, carried: CarriedHandles) -> FetchedValue {
        FetchedValue { bytes: ValueBytes::Inline(value), _carried: carried }
    }

    /// The value: `what` it is, for the error.
    ///
    /// # Errors
    /// `Refused` if it is none of this type.
    pub(crate) fn decode<T: DeserializeOwned>(&self, what: &str) -> Result<T, CallError> {
        self.decode_seed(std::marker::PhantomData, what)
    }

    /// What the seed makes of it: `what` it is, for the error.
    ///
    /// # Errors
    /// As [`FetchedValue::decode`].
    pub(crate) fn decode_seed<'de, S: DeserializeSeed<'de>>(
        &'de self,
        seed: S,
        what: &str,
    ) -> Result<S::Value, CallError> {
        self.bytes.decode_seed(seed, what)
    }
}

impl MemberProcess {
    /// What a reference stands for that the process holds: waits until it is known.
    pub(crate) async fn known(&self, object: ObjectId) -> ObjectValue {
        let mut counts = None;
        loop {
            match self.with(|state| state.value_or_wait(object)) {
                Ok(value) => return value,
                Err(UnknownValue { callee, known }) => {
                    // A task that waits here gives its core back.
                    counts.get_or_insert_with(|| UnendedCall::begin(self.unknown_calls(), callee));
                    // Asked again in any case.
                    let _told = known.await;
                }
            }
        }
    }

    /// The value of a reference, which the process has to hold until it is decoded.
    ///
    /// # Errors
    /// Why it has none, or cannot be read.
    pub(crate) async fn fetch(
        self: &Arc<MemberProcess>,
        object: ObjectId,
    ) -> Result<FetchedValue, CallError> {
        match self.known(object).await {
            ObjectValue::Inline(value) => {
                Ok(FetchedValue::inline(value, CarriedHandles::new(self, Vec::new())))
            }
            ObjectValue::Stored(stored) => {
                self.fetch_stored(stored, CarriedHandles::new(self, Vec::new())).await
            }
            ObjectValue::Failed(error) => Err(error),
        }
    }

    /// A stored value. `carried` are references by which the process holds it.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) async fn fetch_stored(
        self: &Arc<MemberProcess>,
        StoredObject { object, has_handles, .. }: StoredObject,
        carried: CarriedHandles,
    ) -> Result<FetchedValue, CallError> {
        let _waits = StoreWait::begin();
        let handles = match has_handles {
            true => {
                let opened = self.with(|state| state.open_object(object));
                let handles = opened.await.map_err(|_| CallError::Cancelled)?;
                if handles.is_empty() {
                    let maker = object.maker;
                    return Err(CallError::ObjectLost(format!(
                        "process {maker}, which made it, has ended before it told which references are in it"
                    )));
                }
                handles
            }
            false => Vec::new(),
        };
        let handles = CarriedHandles::new(self, handles);
        // A task that waits for another node gives its core back.
        let begin_wait = || UnendedCall::begin(self.unknown_calls(), CalleeKind::Other);
        let mapping = self.store().read_noting(object, begin_wait).await?;
        // What is mapped stays, also when the reference is given back.
        drop(carried);
        Ok(FetchedValue { bytes: ValueBytes::Object(mapping), _carried: handles })
    }

    /// The values of references in arguments, which the process has to hold until they are decoded.
    ///
    /// # Errors
    /// `Dependency` if one has none; else if one cannot be read.
    pub(crate) async fn fetch_all(
        self: &Arc<MemberProcess>,
        needs: Vec<ObjectId>,
    ) -> Result<FetchedValues, CallError> {
        let needs: BTreeSet<ObjectId> = needs.into_iter().collect();
        let fetches = needs.into_iter().map(|object| async move {
            match self.known(object).await {
                ObjectValue::Failed(error) => Err(error.of_argument()),
                ObjectValue::Inline(_) | ObjectValue::Stored(_) => Ok((object, self.fetch(object).await?)),
            }
        });
        iter(fetches).buffer_unordered(FETCHES_AT_ONCE).try_collect().await
    }

    /// Waits until the values of references are known.
    ///
    /// # Errors
    /// `Dependency` if one has none.
    pub(crate) async fn all_known(&self, needs: &[ObjectId]) -> Result<(), CallError> {
        for need in needs {
            if let ObjectValue::Failed(error) = self.known(*need).await {
                return Err(error.of_argument());
            }
        }
        Ok(())
    }

    /// Stores a large value. `holds` are the handles in it. A value that is made again gets the name that it
    /// had.
    ///
    /// # Errors
    /// If there is no room for it.
    pub(crate) async fn store_value(
        self: &Arc<MemberProcess>,
        writer: ObjectWriter,
        holds: Vec<Arc<Hold>>,
        named: Option<ObjectId>,
    ) -> Result<(StoredObject, Arc<Hold>), CallError> {
        let process = Arc::clone(self);
        // It goes on when nobody waits for it any more: the core has to know of all that the store has.
        let storing = tokio::spawn(async move {
            let bytes = writer.bytes();
            let object = named.unwrap_or_else(|| process.with(|state| state.new_object()));
            match named {
                None => process.store().store(object, writer).await?,
                Some(_) => process.store().remake(object, writer).await?,
            }
            let stored = process.with(|state| state.stored(object, bytes, &held(&holds)));
            drop(holds);
            Ok((stored, Hold::held_already(&process, HeldId::Object(object))))
        });
        let _waits = StoreWait::begin();
        storing.await.map_err(|_| CallError::Cancelled)?
    }
}

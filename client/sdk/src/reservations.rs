//! Times for which nodes are reserved.

use cohabit_types::{NodeReservation, ReservationRequest};

use crate::Error;
use crate::call::{Client, short_call_context};
use crate::link::HeadConnection;

impl Client {
    /// Reserves nodes for maintenance, or for the jobs of some users. For admins. The same request again,
    /// while that reservation lasts, answers with it.
    ///
    /// # Errors
    /// Those of the link, and what is wrong with the request: [`Error::Refused`].
    pub async fn reserve(&self, request: &ReservationRequest) -> Result<NodeReservation, Error> {
        let reserve = |to: HeadConnection| {
            let request = Box::new(request.clone());
            async move { to.service.reserve(short_call_context(), request).await }
        };
        Ok(*self.call(reserve).await?)
    }

    /// Cancels a reservation, whether it has begun or not. For admins.
    ///
    /// # Errors
    /// Those of the link; [`Error::Refused`] if there is no such reservation.
    pub async fn cancel_reservation(&self, number: u64) -> Result<NodeReservation, Error> {
        let cancel = |to: HeadConnection| async move {
            to.service.cancel_reservation(short_call_context(), number).await
        };
        Ok(*self.call(cancel).await?)
    }

    /// The reservations that have not ended, in the order in which they were made.
    ///
    /// # Errors
    /// Those of the link.
    pub async fn reservations(&self) -> Result<Vec<NodeReservation>, Error> {
        self.call(|to: HeadConnection| async move { to.service.reservations(short_call_context()).await })
            .await
    }
}

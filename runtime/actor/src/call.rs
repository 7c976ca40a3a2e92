//! The question that can travel: a request and the way for its response, with nothing else to take apart.
//!
//! An actor on another node is an `Address<Call<Request, Response>>`, where both types are serialisable. The
//! link sends the request and keeps the reply. On the actor's node,
//! [`Address::mapped`](crate::Address::mapped) turns a call into the actor's own message; [`ReplyTo::map`] fits
//! its typed replies. A call never knows whether it was sent over a link.

use crate::ReplyTo;

/// A request that wants a response: `address.ask(Call::of(request)).await`.
#[derive(Debug)]
pub struct Call<Request, Response> {
    /// What is asked; it may travel.
    pub request: Request,
    /// The way for the response; it stays on the asker's node.
    pub reply_to: ReplyTo<Response>,
}

impl<Request, Response> Call<Request, Response> {
    /// What [`ask`](crate::Address::ask) and [`ask_within`](crate::Address::ask_within) want, for this
    /// request.
    pub fn of(request: Request) -> impl FnOnce(ReplyTo<Response>) -> Self {
        move |reply_to| Self { request, reply_to }
    }
}

//! Stored code of real heads: what may be stored, by whom it is read, and what is given up.

use cohabit_store::{FileContent, FileSelection, Manifest, ManifestFile, hash_of};
use cohabit_types::{
    Bytes, CodeRequest, CodeSnapshot, ContentHash, ContentPiece, Incarnation, Inventory, JobChange, JobId,
    JobSpec, NodeId, Outcome, Refusal, RefusalCode, Span, WorkerKey,
};

use crate::RequestLimits;
use crate::test_kit::cluster::{TestClient, TestHead, TestWorker, within};
use crate::test_kit::{inventory, spec};

/// A folder with one file of this content, and its manifest as it is stored.
fn folder(content: &[u8]) -> (CodeSnapshot, Vec<u8>) {
    let stored =
        FileContent::Stored { hash: hash_of(content), size: content.len() as u64, is_executable: false };
    let file = ManifestFile { path: "train.py".into(), content: stored };
    let manifest = Manifest::new(FileSelection::All, vec![file]).unwrap();
    let (hash, bytes) = manifest.encode();
    (CodeSnapshot { manifest: hash, folder: "/tmp".into(), files: 1, bytes: manifest.bytes() }, bytes)
}

fn whole(content: &[u8]) -> ContentPiece {
    ContentPiece { file: hash_of(content), size: content.len() as u64, offset: 0, bytes: content.into() }
}

fn patient() -> cohabit_net::Context {
    cohabit_net::context_for(Span::from_secs(60))
}

impl TestClient {
    async fn put(&self, pieces: Vec<ContentPiece>) -> Result<Vec<u64>, Refusal> {
        within(self.head.put_content(patient(), pieces)).await.unwrap()
    }

    /// Stores a folder with this content.
    pub(super) async fn stored(&self, content: &[u8]) -> CodeSnapshot {
        let (code, manifest) = folder(content);
        self.put(vec![whole(content), whole(&manifest)]).await.unwrap();
        code
    }

    async fn try_submit_with(&self, code: &CodeSnapshot) -> Result<JobId, Refusal> {
        let spec = JobSpec { code: Some(code.clone()), ..spec() };
        let submitted = within(self.head.submit(patient(), Box::new(spec), None)).await.unwrap();
        submitted.map(|receipt| receipt.job)
    }

    async fn read(&self, job: JobId, file: ContentHash) -> Result<Vec<u8>, Refusal> {
        let request = CodeRequest { job, file, offset: 0 };
        let piece = within(self.head.read_code(patient(), request)).await.unwrap();
        piece.map(|piece| piece.bytes)
    }
}

impl TestWorker {
    async fn read(&self, job: JobId, file: ContentHash) -> Result<Vec<u8>, Refusal> {
        let request = CodeRequest { job, file, offset: 0 };
        let piece = within(self.head().read_code(patient(), request)).await.unwrap();
        piece.map(|piece| piece.bytes)
    }
}

fn code_of<T: std::fmt::Debug>(result: Result<T, Refusal>) -> RefusalCode {
    result.unwrap_err().code
}

#[tokio::test]
async fn a_job_runs_in_what_was_stored_and_the_worker_reads_it() {
    let head = TestHead::start().await;
    let client = head.admin().await;
    let code = client.stored(b"print(1)").await;
    let (_, manifest) = folder(b"print(1)");
    let job = client.try_submit_with(&code).await.unwrap();
    assert_eq!(client.show(job).await.code, Some(code.clone()));
    // The journal knows it, too.
    let head = head.restarted().await;
    let client = head.admin().await;
    let mut worker = head.worker(1, vec![]).await;
    let order = worker.next_run().await;
    assert_eq!(order.spec.code, Some(code.clone()));
    assert_eq!(worker.read(job, code.manifest).await.unwrap(), manifest);
    assert_eq!(worker.read(job, hash_of(b"print(1)")).await.unwrap(), b"print(1)");
    assert_eq!(client.read(job, code.manifest).await.unwrap(), manifest);
    assert_eq!(client.read(job, hash_of(b"print(1)")).await.unwrap(), b"print(1)");
    assert_eq!(code_of(worker.read(job, hash_of(b"else")).await), RefusalCode::NotFound);
}

#[tokio::test]
async fn a_worker_reads_only_the_code_of_its_own_ranks() {
    let head = TestHead::start().await;
    let client = head.user("ada").await;
    let code = client.stored(b"print(1)").await;
    let job = client.try_submit_with(&code).await.unwrap();
    let plain = client.submit().await;
    let mut worker = head.worker(1, vec![]).await;
    assert_eq!(worker.next_run().await.attempt.job, job);
    assert_eq!(worker.next_run().await.attempt.job, plain);
    assert_eq!(code_of(worker.read(plain, code.manifest).await), RefusalCode::NotFound);
    let inventory = Inventory { name: "other".into(), ..inventory() };
    let key = WorkerKey { node: NodeId(uuid::Uuid::from_u128(99)), incarnation: Incarnation(1) };
    let other = head.try_worker_as(key, None, inventory).await.unwrap();
    assert_eq!(code_of(other.read(job, code.manifest).await), RefusalCode::NotFound);
    worker.started(job.attempt(1).rank(0)).await;
    worker.ended(job.attempt(1).rank(0), Outcome::Exited(0)).await;
    client.seen(job, |record| record.state.is_terminal()).await;
    assert_eq!(code_of(worker.read(job, code.manifest).await), RefusalCode::NotFound);
    assert_eq!(client.read(job, hash_of(b"print(1)")).await.unwrap(), b"print(1)", "its user still may");
}

#[tokio::test]
async fn what_is_not_stored_cannot_be_submitted() {
    let head = TestHead::start().await;
    let client = head.user("ada").await;
    let (code, manifest) = folder(b"print(1)");
    assert_eq!(code_of(client.try_submit_with(&code).await), RefusalCode::NotFound);
    client.put(vec![whole(&manifest)]).await.unwrap();
    let refused = client.try_submit_with(&code).await.unwrap_err();
    assert!(refused.message.contains("is not stored"), "{refused}");
    client.put(vec![whole(b"print(1)")]).await.unwrap();
    let moved = CodeSnapshot { folder: "/home/ada".into(), ..code.clone() };
    let refused = client.try_submit_with(&moved).await.unwrap_err();
    assert!(refused.message.contains("does not lie in '/home/ada'"), "{refused}");
    let no_manifest = CodeSnapshot { manifest: hash_of(b"print(1)"), ..code.clone() };
    let refused = client.try_submit_with(&no_manifest).await.unwrap_err();
    assert!(refused.message.contains("cannot be read"), "{refused}");
    client.try_submit_with(&code).await.unwrap();
}

/// Who knows the hashes of others gets nothing for them.
#[tokio::test]
async fn nobody_gets_at_the_code_of_others() {
    let head = TestHead::start().await;
    let (ada, eve, admin) = (head.user("ada").await, head.user("eve").await, head.admin().await);
    let code = ada.stored(b"print(1)").await;
    let job = ada.try_submit_with(&code).await.unwrap();
    assert_eq!(code_of(eve.read(job, code.manifest).await), RefusalCode::NotAllowed);
    assert_eq!(code_of(eve.try_submit_with(&code).await), RefusalCode::NotFound);
    let asked = vec![code.manifest, hash_of(b"print(1)")];
    let missing = within(eve.head.missing_content(patient(), asked.clone())).await.unwrap().unwrap();
    assert_eq!(missing, asked, "she does not even learn that it is stored");
    assert_eq!(admin.read(job, hash_of(b"print(1)")).await.unwrap(), b"print(1)");
    let plain = ada.submit().await;
    assert_eq!(code_of(ada.read(plain, code.manifest).await), RefusalCode::NotFound);
}

#[tokio::test]
async fn a_full_store_gives_up_what_no_live_job_needs() {
    let limits = RequestLimits { user_code: Bytes(3_000), ..RequestLimits::default() };
    let head = TestHead::start_like(|options| options.limits = limits).await;
    let client = head.user("ada").await;
    let used = client.stored(&[1; 1_000]).await;
    let idle = client.stored(&[2; 1_000]).await;
    let job = client.try_submit_with(&used).await.unwrap();
    client.stored(&[3; 1_000]).await;
    assert_eq!(code_of(client.try_submit_with(&idle).await), RefusalCode::NotFound, "it was given up");
    client.try_submit_with(&used).await.unwrap();
    let full = client.put(vec![whole(&[4; 2_000])]).await.unwrap_err();
    assert_eq!(full.code, RefusalCode::NotAllowed);
    assert!(full.message.contains("max-user-code"), "{full}");
    for job in [job, JobId::new(job.number + 1)] {
        client.change(JobChange::Cancel, vec![job]).await.unwrap();
    }
    client.put(vec![whole(&[4; 2_000])]).await.unwrap();
    assert_eq!(code_of(client.try_submit_with(&used).await), RefusalCode::NotFound);
    let other = head.user("eve").await;
    other.stored(&[1; 1_000]).await;
}

#[tokio::test]
async fn requests_are_bounded() {
    let head = TestHead::start().await;
    let client = head.user("ada").await;
    let many = vec![ContentHash([0; 32]); 10_001];
    let refused = within(client.head.missing_content(patient(), many)).await.unwrap().unwrap_err();
    assert_eq!(refused.code, RefusalCode::Invalid);
    let refused = client.put(vec![whole(b""); 4_097]).await.unwrap_err();
    assert!(refused.message.contains("4096"), "{refused}");
    let large = ContentPiece { bytes: vec![0; (1 << 20) + 1], size: 1 << 21, ..whole(b"") };
    assert_eq!(code_of(client.put(vec![large]).await), RefusalCode::Invalid);
    let wrong = ContentPiece { file: hash_of(b"else"), ..whole(b"this") };
    let refused = client.put(vec![wrong]).await.unwrap_err();
    assert!(refused.message.contains("changed on the way"), "{refused}");
}

//! Who is here, in a bucket on the server whose cards fade when nobody says them again.

use std::collections::HashMap;
use std::sync::Arc;

use async_nats::jetstream::kv;
use async_nats::jetstream::message::PublishMessage;
use contexture::pool::Name;
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::link::{Link, PATIENCE, PAUSE, away};
use super::subject::token;
use crate::hub::{HubError, Presence, Watch};

/// How many words wait for a slow watcher.
const WORDS: usize = 256;

pub(super) async fn beat(link: &Link, module: &Name, card: &str) -> Result<(), HubError> {
    // The key may be a hash, so the name stands here too. No name has a line break.
    let value = format!("{module}\n{card}");
    say(link, module, PublishMessage::build().payload(value.into())).await
}

pub(super) async fn leave(link: &Link, module: &Name) -> Result<(), HubError> {
    let gone = PublishMessage::build().header("KV-Operation", "DEL");
    say(link, module, gone).await
}

async fn say(link: &Link, module: &Name, message: PublishMessage) -> Result<(), HubError> {
    let subject = link.subjects.card(&token(module));
    let said = link.again(PATIENCE, || link.publish(subject.clone(), message.clone()));
    said.await
}

pub(super) async fn watch(link: Arc<Link>) -> Result<Watch, HubError> {
    let changes = link.changes();
    let entries = link.again(PATIENCE, || entries(&link)).await?;
    let (words, receiver) = mpsc::channel(WORDS);
    let watcher = Watcher {
        link,
        words,
        here: HashMap::new(),
    };
    tokio::spawn(watcher.run(entries, changes));
    Ok(Watch(receiver))
}

/// All that is in the bucket, then all that comes.
async fn entries(link: &Link) -> Result<kv::Watch, HubError> {
    let bucket = link.jetstream.get_key_value(link.subjects.stream()).await;
    let bucket = match bucket {
        Ok(bucket) => bucket,
        Err(error) => {
            link.prepare().await?;
            return Err(away(error));
        }
    };
    bucket.watch_with_history(">").await.map_err(away)
}

struct Watcher {
    link: Arc<Link>,
    words: mpsc::Sender<Presence>,
    /// Who was said to be here, by key: a key that goes does not say its name.
    here: HashMap<String, Name>,
}

impl Watcher {
    /// Says what changes until nobody hears it. After each outage it begins anew: the client's own watch does not
    /// outlive a server, and who has come and gone meanwhile is in the bucket.
    async fn run(
        mut self,
        mut entries: kv::Watch,
        mut changes: tokio::sync::watch::Receiver<Option<tokio::time::Instant>>,
    ) {
        loop {
            loop {
                let entry = tokio::select! {
                    entry = entries.next() => entry,
                    () = self.words.closed() => return,
                    Ok(()) = changes.changed() => break,
                };
                match entry {
                    Some(Ok(entry)) => {
                        let word = self.word(&entry);
                        if let Some(word) = word
                            && self.words.send(word).await.is_err()
                        {
                            return;
                        }
                    }
                    Some(Err(error)) => {
                        tracing::debug!(%error, "the watch broke");
                        break;
                    }
                    None => break,
                }
            }
            entries = loop {
                tokio::select! {
                    () = self.words.closed() => return,
                    found = self.link.again(PATIENCE, || self::entries(&self.link)) => match found {
                        Ok(entries) => break entries,
                        Err(error) => tracing::debug!(%error, "nobody can be watched"),
                    },
                }
                sleep(PAUSE).await;
            };
        }
    }

    fn word(&mut self, entry: &kv::Entry) -> Option<Presence> {
        if entry.operation != kv::Operation::Put {
            let module = self.here.remove(&entry.key)?;
            return Some(Presence::Left { module });
        }
        let value = std::str::from_utf8(&entry.value).ok()?;
        let (name, card) = value.split_once('\n')?;
        let module = Name::new(name).ok()?;
        // Nobody speaks for another.
        if token(&module) != entry.key {
            return None;
        }
        self.here.insert(entry.key.clone(), module.clone());
        Some(Presence::Here {
            module,
            card: card.to_owned(),
        })
    }
}

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use contexture::Message;
use contexture::prompt::{Section, Template};
use contexture_agent::{AgentResult, Budget, Cancel, Ended, Event, Price};
use contexture_server::DaemonLock;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::task::spending;
use super::{print_json, run, runtime};
use crate::agent::{self, Begin, Interrupt, Ready};
use crate::args::Orchestrate;
use crate::config::{self, Config};
use crate::error::CliError;
use crate::fleet::{self, Reach};
use crate::output::note;
use crate::view::{Paint, Screen, Steps, safe, task_line};
use crate::work::{self as pool, Native, PoolTools, TOOLS};
use crate::{state, store, templates};

/// `ctx orchestrate`.
pub fn orchestrate(options: &Orchestrate, json: bool, dir: Option<&Path>) -> Result<(), CliError> {
    let goal = run::task(&options.goal)?;
    runtime()?.block_on(async {
        let config = config::load(dir)?;
        let ending = Cancel::default();
        let (fleet, working) = reach(options, &config, dir, &ending).await?;
        let done = achieve(&goal, options, config, Arc::new(fleet), json).await;
        ending.cancel();
        if let Some(working) = working {
            let _ = working.await;
        }
        done
    })
}

/// The daemon, or a fleet that hands out tasks here for as long as this takes.
async fn reach(
    options: &Orchestrate,
    config: &Config,
    dir: Option<&Path>,
    ending: &Cancel,
) -> Result<(Reach, Option<tokio::task::JoinHandle<()>>), CliError> {
    if let Some(client) = fleet::daemon(config)? {
        return Ok((Reach::Daemon(client), None));
    }
    let lock = DaemonLock::take(state::made(config)?)?;
    let namespace = pool::key(config)?.namespace();
    let opened = fleet::open(config, dir, pool::hub(config, &namespace).await?)?;
    let native = Arc::new(Native::new(&options.agent, dir.map(Path::to_owned)));
    let (handing_out, until) = (Arc::clone(&opened), ending.clone());
    let working = tokio::spawn(async move { handing_out.work(Some(native), until).await });
    let here = Reach::Here {
        fleet: opened,
        _lock: lock,
    };
    Ok((here, Some(working)))
}

async fn achieve(
    goal: &str,
    options: &Orchestrate,
    config: Config,
    fleet: Arc<Reach>,
    json: bool,
) -> Result<(), CliError> {
    let shown = Shown {
        screen: Arc::new(Screen::new()),
        json,
        output: run::Output::default(),
    };
    let (begun, id) = oneshot::channel();
    let working = async {
        // Who could not begin says why itself.
        match id.await {
            Ok(id) => work(goal, id, options, config, &fleet, &shown).await,
            Err(_) => Ok(()),
        }
    };
    let params = json!({"description": goal, "limits": spending(&options.spending)});
    let following = follow(&fleet, params, begun, &shown);
    let (followed, worked) = tokio::join!(following, working);
    worked?;
    followed?;
    shown.output.end()
}

/// Where a goal is shown, and how that goes.
struct Shown {
    screen: Arc<Screen>,
    json: bool,
    output: run::Output,
}

/// Begins the goal, and shows what becomes of its parts until it is over.
async fn follow(
    fleet: &Reach,
    params: Value,
    begun: oneshot::Sender<String>,
    shown: &Shown,
) -> Result<(), CliError> {
    let mut begun = Some(begun);
    let paint = Paint::stderr();
    let followed = fleet.stream("task.goal", params, async |update: Value| {
        let task = &update["task"];
        if task.get("parent").is_some() {
            match shown.json {
                true => print_json(&update)?,
                false => shown.screen.note(&[task_line(task, 1, paint)])?,
            }
        } else if let Some(begun) = begun.take() {
            let _ = begun.send(task["id"].as_str().unwrap_or_default().to_owned());
        }
        Ok(())
    });
    followed.await.map(|_| ())
}

/// Has the orchestrator work, and ends the goal with what came of it.
async fn work(
    goal: &str,
    id: String,
    options: &Orchestrate,
    config: Config,
    fleet: &Arc<Reach>,
    shown: &Shown,
) -> Result<(), CliError> {
    let cancel = Interrupt::listen(&shown.screen).starts();
    let tools = Arc::new(PoolTools {
        fleet: Arc::clone(fleet),
        goal: id.clone(),
        stopped: Mutex::default(),
        cancel,
    });
    let result = match price(options, &config) {
        Ok(price) => orchestrator(goal, options, config, &tools, price, shown)
            .await
            .map(|result| (result, price)),
        Err(error) => Err(error),
    };
    let stopped = tools
        .stopped
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let mut end = json!({"id": id});
    if let Ok((result, price)) = &result {
        let (read, written) = (result.usage.input_tokens, result.usage.output_tokens);
        end["tokens"] = json!(read.saturating_add(written));
        end["costMicros"] = json!(price.of(&result.usage));
    }
    let failed = match (&result, stopped) {
        (_, Some(why)) => Some(why),
        (Ok((result, _)), None) => why_not(result),
        (Err(error), None) => Some(error.to_string()),
    };
    match (&failed, &result) {
        (None, Ok((result, _))) => end["result"] = json!(result.text),
        _ => end["error"] = json!(failed),
    }
    fleet.call("task.end", end).await?;
    result?;
    match failed {
        None => Ok(()),
        Some(what) => Err(CliError::Unfinished {
            what,
            hint: format!("`ctx task show {id}` says what came of its parts"),
        }),
    }
}

/// Why a run came to no answer, if it did not.
fn why_not(result: &AgentResult) -> Option<String> {
    Some(match result.ended {
        Ended::Answered => return None,
        Ended::MaxSteps => format!("no answer after {} steps", result.steps),
        Ended::Cancelled => "stopped".to_owned(),
        Ended::Length => "the answer was cut at its longest length".to_owned(),
        Ended::Budget => "what it may spend is spent".to_owned(),
        Ended::Refused | Ended::Failed => "the provider withheld the answer".to_owned(),
    })
}

/// What the orchestrator's own tokens cost.
fn price(options: &Orchestrate, config: &Config) -> Result<Price, CliError> {
    let (spec, _) = agent::chosen(&options.agent, config);
    match (config.work.price(&spec), options.spending.max_cost) {
        (Some(price), _) => Ok(price),
        (None, None) => Ok(Price::default()),
        (None, Some(_)) => Err(CliError::Usage {
            what: format!("--max-cost: nobody knows what {spec} costs"),
            hint: "say so in `prices` of contexture.json".to_owned(),
        }),
    }
}

/// Runs the orchestrator itself.
async fn orchestrator(
    goal: &str,
    options: &Orchestrate,
    config: Config,
    tools: &Arc<PoolTools>,
    price: Price,
    shown: &Shown,
) -> Result<AgentResult, CliError> {
    let home = store::of(&config)?;
    let model = agent::model(&options.agent, &config).await?;
    let locale = config.work.locale;
    let prompt = templates::load(&config)?.render(Template::Orchestrator, json!({}))?;
    let mut own = options.agent.clone();
    // A small model gets the tools that somebody named; these are why it is asked at all.
    own.allow.extend(TOOLS.map(str::to_owned));
    let begin = Begin {
        workspace: config.root.clone(),
        cwd: std::env::current_dir().unwrap_or_else(|_| config.root.clone()),
        key: match &options.agent.session {
            Some(name) => contexture_store::Key::new(name.as_str())?,
            None => agent::fresh(&home.sessions, "orchestrate")?,
        },
        config,
        home,
        model,
        asks: None,
        servers: Vec::new(),
        host: Some(Section::stable("orchestrator", "orchestrate", prompt)),
        holds: Some(
            TOOLS
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<BTreeSet<String>>(),
        ),
        more: tools.tools(),
    };
    let Ready {
        mut agent,
        mut chat,
        notices,
        ..
    } = agent::make(&own, begin).await?;
    for notice in notices {
        note!("ctx: {}", safe(&notice));
    }
    agent.options.limits.budget = Budget {
        max_tokens: options.spending.max_tokens.map(|most| most as u64),
        max_cost_micros: options.spending.max_cost,
        price,
    };
    let (fleet, now) = (Arc::clone(&tools.fleet), tokio::runtime::Handle::current());
    agent.options.refresh = Some(Arc::new(move || {
        let asked = fleet.call("pool.context", json!({"locale": locale.as_str()}));
        // What is not known is not told; the next request asks again.
        let context = now.block_on(asked).unwrap_or_default();
        let context = context["prompt"].as_str().map(pool::told);
        context.into_iter().collect()
    }));
    let budget = chat.settings().config.max_input_tokens;
    let steps = (!shown.json).then(|| Steps::begin(&shown.screen, budget));
    let on = |event: Event| {
        shown.output.wrote(match &steps {
            Some(steps) => steps.show(&event),
            None if event.is_live() => Ok(()),
            None => run::line(&event),
        });
    };
    let result = agent
        .run(&mut chat, Message::user(goal), &tools.cancel, &on)
        .await;
    drop(steps);
    if !shown.json {
        let key = chat.key();
        note!("session {key}: `ctx inspect {key}` shows what the orchestrator was told");
    }
    Ok(result?)
}

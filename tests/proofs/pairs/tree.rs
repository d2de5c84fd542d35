//! Trees as written in model files, unrolled, with a separate adder for every addition.

use mxprobe_api::OperationId;
use mxprobe_models::{Adder, Model, Plan, Term};

#[derive(Clone, Debug)]
pub(super) enum Tree {
    Product(usize),
    C,
    Zero,
    Add(Box<Adder>, Vec<Tree>),
}

impl Tree {
    pub(super) fn of(model: &Model, id: &OperationId) -> Self {
        let (_, plan) = model.plan(id).unwrap();
        Self::below(model, &plan, Term::Node(plan.nodes.len() - 1))
    }

    fn below(model: &Model, plan: &Plan, term: Term) -> Self {
        match term {
            Term::Product(k) => Self::Product(k),
            Term::C => Self::C,
            Term::PositiveZero => Self::Zero,
            Term::Node(node) => {
                let node = &plan.nodes[node];
                let terms = node.terms.iter().map(|term| Self::below(model, plan, *term)).collect();
                Self::Add(Box::new(model.adders[node.adder].clone()), terms)
            }
        }
    }

    /// The model with this tree and its adders, written to a file's text and read back.
    pub(super) fn model(&self, base: &Model) -> Model {
        let mut model = base.clone();
        model.adders.clear();
        let text = self.write(&mut model.adders);
        model.set_tree(0, &text).unwrap_or_else(|error| panic!("{error}"));
        // Read back, as from a file.
        Model::parse("written.toml", &model.to_toml(), None)
            .unwrap_or_else(|error| panic!("{error}\n{}", model.to_toml()))
    }

    fn write(&self, adders: &mut Vec<Adder>) -> String {
        match self {
            Self::Product(k) => k.to_string(),
            Self::C => "c".into(),
            Self::Zero => "+0".into(),
            Self::Add(adder, terms) => {
                let same = |known: &Adder| Adder { name: adder.name.clone(), ..known.clone() } == **adder;
                let name = match adders.iter().find(|known| same(known)) {
                    Some(known) => known.name.clone(),
                    None => {
                        let name = format!("x{}", adders.len());
                        adders.push(Adder { name: name.clone(), ..(**adder).clone() });
                        name
                    }
                };
                let terms: Vec<String> = terms.iter().map(|term| term.write(adders)).collect();
                format!("{name}({})", terms.join(", "))
            }
        }
    }

    /// Changes every addition, from the leaves up.
    pub(super) fn each(&mut self, change: &mut dyn FnMut(&mut Adder, &mut Vec<Tree>)) {
        if let Self::Add(adder, terms) = self {
            terms.iter_mut().for_each(|term| term.each(change));
            change(adder, terms);
        }
    }

    /// The number of additions.
    pub(super) fn additions(&mut self) -> usize {
        let mut count = 0;
        self.each(&mut |_, _| count += 1);
        count
    }
}

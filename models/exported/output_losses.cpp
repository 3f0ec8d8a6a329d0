#include "models/exported/output_losses.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "models/losses.h"
#include "models/zoo/targets.h"
#include "runtime/error.h"

namespace tutti::exported {
namespace {

constexpr const char* kTarget = "target";
constexpr const char* kTotal = "total";  // loss/train/total is the sum
constexpr const char* kOwn = "own";

std::string output_named(const Setting& table, const OutputLosses::Shapes& outputs) {
  const std::vector<std::string> names = names_of(outputs);
  if (!table.has("output")) {
    if (names.size() == 1) return names[0];
    table.fail("output is missing: the program has " + quoted_list(names));
  }
  const Setting& output = table.at("output");
  if (names.size() == 1 && names[0].empty() && output.text() == "0") return "";
  if (std::ranges::count(names, output.text()) > 0) return output.text();
  const bool has_names = names.size() > 1 || !names[0].empty();
  output.fail(has_names ? "the program has no such output; it has " + quoted_list(names)
                        : "the program has one output without a name; leave this key out");
}

std::string kind_of(const Setting& table) {
  if (!table.has("loss")) return "cross_entropy";
  const Setting& loss = table.at("loss");
  return (loss.is_text() ? loss : loss.at("kind")).text();
}

// An error of the work, at the line of the recipe.
template <class Work>
auto blaming(const Setting& table, const Work& work) try {
  return work();
} catch (const UserError& error) {
  if (error.position().line > 0 || error.kind() != EndKind::kUserError) throw;
  table.fail(error);
}

at::Tensor total_of(const std::vector<LossParts::Part>& parts, const std::vector<at::Tensor>& numbers) {
  at::Tensor total;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const at::Tensor term = parts[i].weight == 1.0 ? numbers[i] : numbers[i] * parts[i].weight;
    total = total.defined() ? total + term : term;
  }
  return total;
}

}  // namespace

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "'" : ", '") + name + "'";
  return text;
}

bool has_classes_last(const Shape& outputs, const Shape& target) {
  const auto are_scores = [&](auto first) {
    return outputs.size() == target.size() + 1 && std::equal(target.begin(), target.end(), first);
  };
  return outputs.size() > 1 && are_scores(outputs.begin()) && !are_scores(outputs.begin() + 1);
}

OutputLosses::OutputLosses(const Setting& losses, const Shapes& outputs, const SampleSpec& samples) {
  for (const Setting& table : losses.array()) {
    Term term{.table = table, .output = output_named(table, outputs), .weight = table.at("weight").number()};
    const bool is_own = table.has("loss") && kind_of(table) == kOwn;
    if (is_own && table.has("target"))
      table.at("target").fail("loss = \"own\" compares the output with no target");
    if (!is_own) term.loss = table.has("loss") ? make_loss(table.at("loss")) : default_loss();
    const std::string& name = samples.shapes.contains(term.output) ? term.output : kTarget;
    if (!is_own) term.target = table.has("target") ? table.at("target").text() : name;
    losses_.push_back(std::move(term));
  }
  name_parts();
  const bool has_any = std::ranges::any_of(
      losses_, [&](const Term& term) { return term.loss && samples.shapes.contains(term.target); });
  for (Term& term : losses_)
    if (has_any && term.loss) plan(term, outputs, samples);
}

// By the output, and where that would be ambiguous by the loss too.
void OutputLosses::name_parts() {
  const auto uses = [this](const std::string& output) {
    return std::ranges::count(losses_, output, &Term::output);
  };
  for (Term& term : losses_) {
    if (term.table.has("name")) {
      term.name = term.table.at("name").text();
      if (term.name.empty()) term.table.at("name").fail("expected a name that is not empty");
    } else if (term.output.empty()) {
      term.name = kind_of(term.table);
    } else {
      term.name = term.output + (uses(term.output) > 1 ? "_" + kind_of(term.table) : "");
    }
  }
  for (const Term& term : losses_) {
    const Setting& blamed = term.table.has("name") ? term.table.at("name") : term.table;
    if (term.name == kTotal) blamed.fail("the sum of all losses is logged as 'total'; name gives another");
    if (std::ranges::count(losses_, term.name, &Term::name) > 1)
      blamed.fail("several losses would be logged as '" + term.name + "'; name gives another");
  }
}

void OutputLosses::plan(Term& term, const Shapes& outputs, const SampleSpec& samples) {
  const Setting& table = term.table;
  const auto target = samples.shapes.find(term.target);
  if (target == samples.shapes.end()) {
    const std::string what =
        "the data has no array '" + term.target + "'; it has " + quoted_list(names_of(samples.shapes));
    table.has("target") ? table.at("target").fail(what)
                        : table.fail(what + "; target names the one that the output is compared with");
  }
  Shape shape = std::ranges::find(outputs, term.output, &Shapes::value_type::first)->second;
  if (std::ranges::count(shape, -1) > 0) return;
  const auto [known, is_new] = classes_are_last_.try_emplace(term.output, false);
  if (is_new) known->second = has_classes_last(shape, target->second);
  if (known->second) std::ranges::rotate(shape, shape.end() - 1);
  term.has_labels = plan_targets(table, samples, term.target, shape).has_labels;
}

std::vector<LossParts::Part> OutputLosses::parts() const {
  std::vector<LossParts::Part> parts;
  for (const Term& term : losses_) parts.push_back({term.name, term.weight});
  return parts;
}

at::Tensor OutputLosses::output_of(const Outputs& outputs, const std::string& name) const {
  const auto& children = outputs.children();
  const auto child = std::ranges::find(children, name, &Outputs::Children::value_type::first);
  if (!outputs.is_leaf() && child == children.end())
    throw UserError("the program has no output '" + name + "'; it has " + quoted_list(names_of(children)));
  const at::Tensor& output = outputs.is_leaf() ? outputs.tensor() : child->second.tensor();
  const auto last = classes_are_last_.find(name);
  return last != classes_are_last_.end() && last->second ? output.movedim(-1, 1) : output;
}

LossParts::Compared OutputLosses::compared(const Term& term, const Outputs& outputs,
                                           const Batch& batch) const {
  const at::Tensor& target = batch[term.target];
  const bool are_values = term.loss->targets() == LossTargets::kValues;
  return {output_of(outputs, term.output), are_values ? target : wide_indices(target)};
}

at::Tensor OutputLosses::mean(const Term& term, const Outputs& outputs, const Batch& batch) const {
  if (!term.loss) return output_of(outputs, term.output).mean();
  return blaming(term.table, [&] {
    const auto [output, target] = compared(term, outputs, batch);
    const bool counts_by_samples = !is_sum() || !term.loss->leaves_targets_out();
    return counts_by_samples ? term.loss->mean(output, target) : term.loss->of_samples(output, target).mean();
  });
}

at::Tensor OutputLosses::sample_losses(const Term& term, const Outputs& outputs, const Batch& batch) const {
  if (!term.loss) return output_of(outputs, term.output);
  return blaming(term.table, [&] {
    const auto [output, target] = compared(term, outputs, batch);
    return term.loss->of_samples(output, target);
  });
}

std::vector<at::Tensor> OutputLosses::means(const Outputs& outputs, const Batch& batch) const {
  std::vector<at::Tensor> means;
  for (const Term& term : losses_) means.push_back(mean(term, outputs, batch));
  return means;
}

at::Tensor OutputLosses::sum(const Outputs& outputs, const Batch& batch) const {
  return total_of(parts(), means(outputs, batch));
}

at::Tensor OutputLosses::sample_losses(const Outputs& outputs, const Batch& batch) const {
  std::vector<at::Tensor> all;
  for (const Term& term : losses_) {
    all.push_back(sample_losses(term, outputs, batch));
    if (all.back().dim() != 1 || all.back().size(0) != batch.samples()) return {};
  }
  return total_of(parts(), all);
}

double OutputLosses::weight(const Batch& batch) const {
  const Term& term = losses_.front();
  if (is_sum() || !term.loss) return static_cast<double>(batch.samples());
  return blaming(term.table, [&] { return term.loss->items(wide_indices(batch[term.target])); });
}

bool OutputLosses::takes_dense_targets() const {
  const Term& term = losses_.front();
  return !is_sum() && term.loss && term.target == kTarget && term.loss->takes_dense_targets();
}

void OutputLosses::require_ignoring(const Setting& ignore_index) const {
  for (const Term& term : losses_) {
    if (!term.loss) continue;
    if (!term.loss->leaves_targets_out())
      ignore_index.fail(kind_of(term.table) + " leaves no target out: an ignored one belongs to no class");
    if (term.target != kTarget && term.target != "labels")
      ignore_index.fail("ignore_index marks targets of 'target' and 'labels'; in '" + term.target +
                        "' the targets that do not count must be -100 in the data");
  }
}

void OutputLosses::prepare(c10::Device where) const {
  for (const Term& term : losses_)
    if (term.loss) term.loss->prepare(where);
}

bool OutputLosses::uses_all_ranks() const {
  return std::ranges::any_of(losses_,
                             [](const Term& term) { return term.loss && term.loss->uses_all_ranks(); });
}

void OutputLosses::set_ranks(AllRanks* ranks) const {
  for (const Term& term : losses_)
    if (term.loss) term.loss->set_ranks(ranks);
}

LossParts::Compared OutputLosses::compared(const Outputs& outputs, const Batch& batch,
                                           const std::string& output, const std::string& target) const {
  if (!output.empty()) output_of(outputs, output);  // names those that there are
  const auto fits = [&](const Term& term) {
    return term.loss && (output.empty() || term.output == output) &&
           (target.empty() || term.target == target);
  };
  const auto fitting = std::ranges::find_if(losses_, fits);
  if (fitting != losses_.end() && target.empty()) return compared(*fitting, outputs, batch);
  if (target.empty())
    throw UserError("no loss compares " + (output.empty() ? "an output" : "the output '" + output + "'") +
                    " with a target; target names an array");
  const std::string& name = !output.empty()            ? output
                            : fitting != losses_.end() ? fitting->output
                                                       : losses_.front().output;
  return {output_of(outputs, name), wide_indices(batch[target])};
}

}  // namespace tutti::exported

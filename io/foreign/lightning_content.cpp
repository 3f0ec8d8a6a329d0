#include <algorithm>
#include <cmath>

#include "io/foreign/foreign_content.h"

namespace tutti {
namespace {

constexpr const char* kVersion = "pytorch-lightning_version";

int64_t progress(const ObjectTree& saved, std::initializer_list<std::string_view> keys) {
  const ObjectTree* loop = saved.at({"loops", "fit_loop"});
  const ObjectTree* value = loop ? loop->at(keys) : nullptr;
  return value ? value->integer(-1) : -1;
}

// Steps of the epoch: batches, of which several make a step if gradients are accumulated.
int64_t steps_in_epoch(const ObjectTree& saved, int64_t steps) {
  const int64_t current = progress(saved, {"epoch_loop.batch_progress", "current", "processed"}),
                total = progress(saved, {"epoch_loop.batch_progress", "total", "processed"});
  if (current < 0 || total < 1 || steps < 1) return -1;
  const auto batches =
      static_cast<int64_t>(std::llround(static_cast<double>(total) / static_cast<double>(steps)));
  return current / std::max<int64_t>(1, batches);
}

// Removes the name of the module's only member: "net.".
void remove_member(ForeignContent& content) {
  if (content.weights.empty()) return;
  const std::string& name = content.weights.front().first;
  const std::string member = name.substr(0, name.find('.') + 1);
  const auto is_below = [&](const auto& weight) { return weight.first.starts_with(member); };
  if (member.empty() || !std::ranges::all_of(content.weights, is_below)) return;
  for (auto& [weight, tensor] : content.weights) weight.erase(0, member.size());
  for (std::string& weight : content.state.imported.weights) weight.erase(0, member.size());
}

}  // namespace

bool is_lightnings(const ObjectTree& saved) { return saved.find(kVersion) && saved.find("state_dict"); }

ForeignContent lightning_content(const ObjectTree& saved) {
  ForeignContent content;
  ImportedState& imported = content.state.imported;
  imported.program = "Lightning " + saved.find(kVersion)->text();
  add_weights(content, saved.find("state_dict"));
  remove_member(content);
  if (const ObjectTree* optimizer = item(saved.find("optimizer_states"), 0))
    add_optimizer(content, *optimizer);
  if (item(saved.find("optimizer_states"), 1))
    imported.left_behind.push_back("all optimizers but the first: a run has one");
  const ObjectTree *step = saved.find("global_step"), *epoch = saved.find("epoch");
  Timestamp& time = content.state.time;
  if (step) time.batch = step->integer(0);
  if (epoch) time.epoch = epoch->integer(0);
  time.batch_in_epoch = steps_in_epoch(saved, time.batch);
  const ObjectTree* callbacks = saved.find("callbacks");
  for (const auto& [name, callback] :
       callbacks && callbacks->dict() ? *callbacks->dict() : ObjectTree::Dict())
    if (callback.dict() && !callback.dict()->empty())
      imported.left_behind.push_back("the state of the callback " + name.substr(0, name.find('{')));
  return content;
}

}  // namespace tutti

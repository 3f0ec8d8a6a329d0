#include "io/foreign/foreign_content.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <set>

#include "io/mapped_file.h"
#include "runtime/printable.h"

namespace tutti {
namespace {

// Keys under which programs put a state_dict(), the most frequent first.
constexpr const char* kModelKeys[] = {"model", "model_state_dict", "state_dict", "module",
                                      "net",   "model_state"};
constexpr const char* kOptimizerKeys[] = {"optimizer", "optimizer_state_dict", "optim", "optimizer_state"};
constexpr const char* kStepKeys[] = {"global_step", "iter_num", "iteration", "step", "num_steps"};

bool has_tensors(const ObjectTree& node) {
  return node.dict() && std::ranges::any_of(
                            *node.dict(), [](const auto& entry) { return entry.second.tensor() != nullptr; });
}

bool is_number(const std::string& text) {
  return !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == text.npos;
}

// What no restored run needs is dropped without a word: settings, counts of a scheduler.
void leave_behind(ForeignContent& content, const std::string& what) {
  content.state.imported.left_behind.push_back(what);
}

// A file may say infinity, or no number.
int64_t whole_steps(double steps) {
  constexpr double kMost = 1e15;
  return steps >= 0 && steps <= kMost ? static_cast<int64_t>(steps) : 0;
}

void add_state(ForeignContent& content, const std::string& parameter, const ObjectTree& state) {
  if (!state.dict()) return;
  for (const auto& [name, value] : *state.dict()) {
    if (value.tensor())
      content.moments.push_back({is_number(parameter) ? '#' + parameter : parameter, name, *value.tensor()});
    else if (name == "step")
      content.state.imported.step = whole_steps(value.number(0));
  }
}

// The rate of the next step, which Composer's schedulers have set one step late.
void add_rate(ForeignContent& content, const ObjectTree& group) {
  const ObjectTree *lr = group.find("lr"), *initial = group.find("initial_lr");
  const double rate = lr ? lr->number(-1) : -1, base = initial ? initial->number(0) : 0;
  if (rate >= 0) content.state.last_step.lr = rate;
  if (rate >= 0 && base > 0) content.state.lagging_rate = rate / base;
}

}  // namespace

const ObjectTree* item(const ObjectTree* list, std::size_t index) {
  if (!list) return nullptr;
  if (list->list()) return index < list->list()->size() ? &(*list->list())[index] : nullptr;
  return list->find(std::to_string(index));
}

int64_t integer_in(const ObjectTree& object) {
  const TreeTensor* tensor = object.tensor();
  if (!tensor) return object.integer(-1);
  if (!tensor->shape.empty() || tensor->dtype != at::kLong || tensor->parts.size() != 1) return -1;
  const MappedFile file(tensor->parts.front().file);
  const uint64_t at = tensor->parts.front().at;
  int64_t number = -1;
  if (at + sizeof number <= file.bytes().size())
    std::memcpy(&number, file.bytes().data() + at, sizeof number);
  return number;
}

void leave_generators(ForeignContent& content) {
  leave_behind(content, "random generators: tutti's numbers are functions of the seed and the step");
}

void add_weights(ForeignContent& content, const ObjectTree* state_dict) {
  if (!state_dict || !state_dict->dict()) return;
  for (const auto& [name, value] : *state_dict->dict()) {
    if (value.tensor()) {
      content.weights.emplace_back(name, *value.tensor());
      content.state.imported.weights.push_back(name);
    } else {
      leave_behind(content, "'" + name + "' of the model, which is no tensor");
    }
  }
}

void add_optimizer(ForeignContent& content, const ObjectTree& state_dict) {
  const ObjectTree* state = state_dict.find("state");
  if (state && state->dict())
    for (const auto& [parameter, values] : *state->dict()) add_state(content, parameter, values);
  const ObjectTree* groups = state_dict.find("param_groups");
  for (std::size_t i = 0; const ObjectTree* group = item(groups, i); ++i) {
    if (i == 0) add_rate(content, *group);
    const ObjectTree* parameters = group->find("params");
    if (parameters && parameters->list())
      content.state.imported.groups.push_back(std::ssize(*parameters->list()));
  }
}

ForeignContent plain_content(const ObjectTree& saved) {
  ForeignContent content;
  content.state.imported.program = "PyTorch";
  std::set<std::string_view> read;
  const auto first = [&](const auto& keys, const auto& fits) -> const ObjectTree* {
    for (const char* key : keys)
      if (const ObjectTree* below = saved.find(key); below && fits(*below)) {
        read.insert(key);
        return below;
      }
    return nullptr;
  };
  const ObjectTree* model = first(kModelKeys, has_tensors);
  if (!model) {
    add_weights(content, &saved);
    content.state.imported.left_behind.clear();  // step and optimizer are no weights
  } else {
    add_weights(content, model);
  }
  if (const auto* optimizer = first(kOptimizerKeys, [](const auto& tree) { return tree.find("state"); }))
    add_optimizer(content, *optimizer);
  if (const auto* step = first(kStepKeys, [](const auto& tree) { return integer_in(tree) >= 0; })) {
    content.state.time.batch = integer_in(*step);
    content.state.time.batch_in_epoch = -1;
  }
  for (const auto& [key, value] : saved.dict() ? *saved.dict() : ObjectTree::Dict())
    if (!read.contains(key) && (model || !value.tensor())) leave_behind(content, "'" + shown(key) + "'");
  return content;
}

}  // namespace tutti

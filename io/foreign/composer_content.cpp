#include <map>

#include "io/checkpoint/timestamp_fields.h"
#include "io/foreign/foreign_content.h"
#include "io/json/json_line.h"

namespace tutti {
namespace {

constexpr std::pair<const char*, double Timestamp::*> kComposerSeconds[] = {
    {"total_wct", &Timestamp::total_wct},
    {"iteration_wct", &Timestamp::iteration_wct},
    {"epoch_wct", &Timestamp::epoch_wct},
    {"batch_wct", &Timestamp::batch_wct}};

constexpr std::string_view kAveraged = "module.";  // before names of torch's AveragedModel

// The name without the wrappers of FSDP, which the names of averages have, and the model's have not.
std::string unwrapped(std::string name) {
  for (const std::string wrapper : {"_fsdp_wrapped_module.", "_checkpoint_wrapped_module."})
    for (std::size_t at = name.find(wrapper); at != name.npos; at = name.find(wrapper))
      name.erase(at, wrapper.size());
  return name;
}

class ComposerState {
 public:
  explicit ComposerState(const ObjectTree& saved) : saved_(saved), state_(*saved.find("state")) {}

  ForeignContent read() {
    read_program();
    add_weights(content_, state_.find("model"));
    read_time();
    read_optimizer();
    read_algorithms();
    read_scaler();
    read_callbacks();
    if (saved_.find("rng")) leave_generators(content_);
    if (const ObjectTree* data = state_.at({"dataset_state", "train"}); data && data->dict())
      leave("the state of the dataset: the position in the data follows from the time");
    return std::move(content_);
  }

 private:
  void leave(const std::string& what) { content_.state.imported.left_behind.push_back(what); }

  void read_program() {
    const ObjectTree* version = state_.at({"metadata", "composer_env_info", "composer_version"});
    content_.state.imported.program = "Composer" + (version ? ' ' + version->text() : "");
    const ObjectTree *batch = state_.at({"metadata", "train_dataloader_batch_size"}),
                     *world = state_.at({"metadata", "world_size"});
    if (batch && world) content_.state.global_batch = batch->integer(0) * world->integer(0);
  }

  void read_time() {
    const ObjectTree* saved = state_.at({"timestamp", "Timestamp"});
    if (!saved) saved = state_.find("timestamp");
    if (!saved) return;
    Timestamp& time = content_.state.time;
    for (const auto& [key, field] : kTimestampCounts) {
      const ObjectTree* value = saved->find(field == &Timestamp::batch ? "batch" : key);
      if (value) time.*field = value->integer(0);
    }
    for (const auto& [key, field] : kComposerSeconds)
      if (const ObjectTree* value = saved->find(key)) time.*field = value->number(0);
    if (saved->find("iteration")) return;
    time.epoch_in_iteration = time.epoch;
    time.token_in_iteration = time.token;
  }

  void read_optimizer() {
    const ObjectTree* all = state_.find("optimizers");
    if (!all || !all->dict()) return;
    for (const auto& [name, optimizer] : *all->dict()) {
      if (&optimizer == &all->dict()->front().second)
        add_optimizer(content_, optimizer);
      else
        leave("the optimizer " + name + ": a run has one");
    }
  }

  void read_algorithms() {
    const ObjectTree* all = state_.find("algorithms");
    if (!all) return;
    if (all->dict())
      for (const auto& [name, algorithm] : *all->dict()) read_algorithm(name, algorithm);
    for (std::size_t i = 0; all->list() && i < all->list()->size(); ++i)
      if (const ObjectTree* pair = item(all, i), *name = item(pair, 0), *algorithm = item(pair, 1);
          name && algorithm)
        read_algorithm(name->text(), *algorithm);
  }

  void read_algorithm(const std::string& name, const ObjectTree& algorithm) {
    if (name == "EMA") return read_ema(algorithm);
    if (name == "SWA") return read_swa(algorithm);
    if (algorithm.dict() && algorithm.dict()->size() > 1)  // "repr" is a text
      leave("the state of " + name + ", which tutti does not have");
  }

  // While a checkpoint is saved, the model has the averages and EMA the trained weights.
  void read_ema(const ObjectTree& ema) {
    const ObjectTree* started = ema.find("ema_started");
    if (!started || !started->is_true()) return;
    std::map<std::string, TreeTensor*> weights;
    for (auto& [name, tensor] : content_.weights) weights[unwrapped(name)] = &tensor;
    const ObjectTree* active = ema.find("ema_weights_active");
    for (const char* group : {"named_parameters_dict", "named_buffers_dict"}) {
      const ObjectTree* tensors = ema.at({"ema_model", group});
      for (const auto& [name, value] : tensors && tensors->dict() ? *tensors->dict() : ObjectTree::Dict()) {
        if (!value.tensor()) continue;
        TreeTensor average = *value.tensor();
        const auto weight = weights.find(unwrapped(name));
        if (active && active->is_true() && weight != weights.end()) std::swap(average, *weight->second);
        content_.averages.emplace_back("EMA/" + unwrapped(name), std::move(average));
      }
    }
    content_.state.listeners["algorithms/EMA"] = "started";
  }

  void read_swa(const ObjectTree& swa) {
    const ObjectTree *started = swa.find("swa_started"), *model = swa.find("swa_model");
    if (!started || !started->is_true()) return;
    const ObjectTree *updates = swa.find("step_counter"), *completed = swa.find("swa_completed"),
                     *averaged = swa.at({"swa_model", "n_averaged"});
    if (!updates || !completed || !averaged || integer_in(*averaged) < 0)
      return leave("the averages of SWA, which lack step_counter, swa_completed or n_averaged");
    for (const auto& [name, value] : *model->dict())
      if (value.tensor() && name.starts_with(kAveraged))
        content_.averages.emplace_back("SWA/" + unwrapped(name.substr(kAveraged.size())), *value.tensor());
    const ObjectTree* optimizers = state_.find("optimizers");
    const bool has_any = optimizers && optimizers->dict() && !optimizers->dict()->empty();
    const ObjectTree* group =
        has_any ? item(optimizers->dict()->front().second.find("param_groups"), 0) : nullptr;
    const ObjectTree* rate = group ? group->find("swa_lr") : nullptr;
    content_.state.listeners["algorithms/SWA"] = json_line({{"counter", updates->integer(0)},
                                                            {"averaged", integer_in(*averaged)},
                                                            {"swa_lr", rate ? rate->number(0) : 0.0},
                                                            {"completed", int64_t{completed->is_true()}}});
  }

  void read_scaler() {
    for (const char* kind : {"GradScaler", "ClosureGradScaler"}) {
      const ObjectTree *scale = state_.at({"scaler", kind, "scale"}),
                       *tracker = state_.at({"scaler", kind, "_growth_tracker"});
      if (!scale) continue;
      content_.state.grad_scaler.scale = scale->number(0);
      content_.state.grad_scaler.growth_tracker = tracker ? tracker->integer(0) : 0;
    }
  }

  void read_callbacks() {
    const ObjectTree* all = state_.find("callbacks");
    if (!all || !all->dict()) return;
    for (const auto& [name, callback] : *all->dict())
      if (name != "CheckpointSaver" && callback.dict() && !callback.dict()->empty())
        leave("the state of the callback " + name);
  }

  const ObjectTree& saved_;
  const ObjectTree& state_;
  ForeignContent content_;
};

}  // namespace

bool is_composers(const ObjectTree& saved) {
  const ObjectTree* state = saved.find("state");
  const ObjectTree* model = state ? state->find("model") : nullptr;
  return model && model->dict();
}

ForeignContent composer_content(const ObjectTree& saved) { return ComposerState(saved).read(); }

}  // namespace tutti

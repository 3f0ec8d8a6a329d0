#include "algorithms/loop/teacher.h"

#include <ATen/core/grad_mode.h>

#include <cinttypes>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "algorithms/loop/ema.h"
#include "algorithms/surgery/options.h"
#include "data/dataset.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/tensor_source.h"
#include "io/json/json_line.h"
#include "models/zoo/catalog.h"
#include "recipe/resolve.h"
#include "runtime/error.h"
#include "runtime/text.h"
#include "tensors/memory/torch_error.h"
#include "training/engine/engine.h"
#include "training/initial_weights.h"
#include "training/state.h"

namespace tutti {
namespace {

std::shared_ptr<Algorithm> make_required(const RequiredAlgorithm& required, const std::string& folder) {
  const Catalog surgery{.section = "algorithms",
                        .noun = "algorithm",
                        .doc = "",
                        .entries = SurgeryKinds::entries(),
                        .repeated = true};
  if (required.settings.empty())
    throw UserError({folder}, "its weights need the algorithm " + required.name + " of a program");
  const Setting section = resolve_section(surgery, required.section(folder), {.folder = folder});
  auto made = SurgeryKinds::made<AlgorithmPtr>(section);
  if (!made) throw UserError({folder}, "its weights need the algorithm " + required.name + " of a plugin");
  return made;
}

// As LoadedModel does.
void operate(Trainee& teacher, const RunState& saved, const std::string& folder) {
  State state;
  static_cast<Trainee&>(state) = std::move(teacher);
  Engine::Options options;
  for (const auto& algorithm : saved.required_algorithms)
    options.algorithms.push_back(make_required(algorithm, folder));
  Logger logger;
  Engine(state, logger, options).run_event(Event::kInit);
  teacher = std::move(static_cast<Trainee&>(state));
}

// A checkpoint's tensors, with the averages that evaluations of its run use in place of its weights.
class EvaluatedTensors final : public TensorSource {
 public:
  explicit EvaluatedTensors(const TensorSource& saved) : saved_(saved) { entries_ = saved.entries(); }
  void read_numbers(const std::string& name, int64_t first, std::span<std::byte> to) const override {
    const bool is_of_model = name.starts_with(kModelPrefix);
    saved_.read_numbers(is_of_model ? evaluated_name(saved_, name.substr(kModelPrefix.size())) : name, first,
                        to);
  }

 private:
  const TensorSource& saved_;
};

}  // namespace

Teacher::Teacher(const Setting& teacher, const State& run, TeacherWeights weights)
    : source_(find_teacher(teacher, run)), weights_(weights), key_(teacher.path) {
  const std::string& folder = source_.checkpoint.folder;
  model_.device = run.device;
  model_.precision = run.precision;
  const SampleSpec samples = run.dataset ? run.dataset->spec() : SampleSpec();
  try {
    model_.model = build_model(source_.section, samples, make_model);
    note_names(*model_.model);
    operate(model_, source_.saved, folder);
  } catch (const std::exception& error) {
    if (folder.empty()) throw;
    throw_run_error(error, folder + ": ");
  }
  for (const auto& named : parameters(*model_.model)) named.parameter->trained = false;
}

void Teacher::load(const State& run, std::string& digest) {
  follow_surgery(model_, source_.saved.seed);
  if (!source_.checkpoint.folder.empty()) {
    const PosixDisk disk;
    const CheckpointTensors tensors(disk, source_.checkpoint);
    const std::string& folder = source_.checkpoint.folder;
    if (weights_ == TeacherWeights::kAsSaved)
      restore_model(model_, tensors, folder);
    else
      restore_model(model_, EvaluatedTensors(tensors), folder);
  } else if (const Setting weights = ModelKeys::kind().read(source_.section).weights; !weights.is_none()) {
    const std::string note = load_initial_weights(model_, source_.section, weights, Lacking::kNothing);
    if (!note.empty()) run.warn_on_rank_zero("the teacher's weights: " + note);
  }
  const std::string before = std::exchange(digest, formatted("%016" PRIx64, weights_digest()));
  if (!before.empty() && before != digest)
    run.warn_on_rank_zero(key_ + " has other weights than before the run was resumed");
}

uint64_t Teacher::weights_digest() const {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& named : parameters(*model_.model)) tensors[named.name] = named.parameter->tensor.detach();
  for (const auto& named : buffers(*model_.model)) tensors[named.name] = named.buffer->tensor;
  for (auto& [name, tensor] : tensors) tensor = tensor.cpu();
  return tensors_digest(MemoryTensors(tensors));
}

Outputs Teacher::forward(const Batch& batch) const {
  const at::NoGradGuard no_grad;
  const EvaluationMode evaluating(*model_.model);
  return model_.forward(batch);
}

std::string teacher_state(const std::string& digest) {
  return digest.empty() ? "" : json_line({{"weights", digest}});
}

std::string digest_of_teacher_state(const std::string& json) {
  return json_text_or_integer(json, "weights").value_or("");
}

std::shared_ptr<Teacher> make_teacher(const Setting& key, const State& run, TeacherWeights weights) try {
  return std::make_shared<Teacher>(key, run, weights);
} catch (const UserError& error) {
  if (error.position().file == key.position.file) throw;
  key.fail(error);
} catch (const std::exception& error) {
  key.fail(run_error(error));
}

}  // namespace tutti

#include "actors/predict.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <sstream>

#include "actors/lone_job.h"
#include "io/hdf5_writer.h"
#include "runtime/catalog.h"
#include "tensors/autocast.h"
#include "tensors/torch_error.h"
#include "training/engine.h"
#include "training/state.h"

namespace tutti {
namespace {

// By dotted path; "" is a lone tensor.
using Parts = std::map<std::string, std::vector<at::Tensor>>;

const Evaluator& evaluator_of(const Job& job, const std::string& label) {
  std::vector<std::string> labels;
  for (const auto& evaluator : job.evaluators) {
    if (evaluator.label == label) return evaluator;
    labels.push_back(evaluator.label);
  }
  Setting(label, "--evaluator", {"command line"})
      .fail(labels.empty() ? "the recipe has no [data.eval]" : "there are " + joined(labels));
}

void predict_batch(State& state, Engine& engine, Parts& parts) {
  engine.run_event(Event::kPredictBatchStart);
  engine.run_event(Event::kPredictBeforeForward);
  {
    const AutocastScope autocast(state.precision.autocast);
    state.outputs = state.model->eval_forward(state.batch);
  }
  engine.run_event(Event::kPredictAfterForward);
  for (const auto& [name, tensor] : state.outputs.leaves()) {
    const bool narrow = tensor.is_floating_point() && tensor.element_size() < 4;
    parts[name].push_back(tensor.to(narrow ? at::kFloat : tensor.scalar_type()).contiguous());
  }
  engine.run_event(Event::kPredictBatchEnd);
}

Parts predictions(State& state, Engine& engine, const Evaluator& evaluator) {
  const at::NoGradGuard no_grad;
  const ForwardContext predicting{/*training=*/false, nullptr};
  set_context(*state.model, &predicting);
  state.dataloader_label = evaluator.label;
  Parts parts;
  engine.run_event(Event::kPredictStart);
  for (int64_t begin = 0; begin < evaluator.data->size(); begin += evaluator.global_batch) {
    std::vector<int64_t> rows(std::min(evaluator.global_batch, evaluator.data->size() - begin));
    std::iota(rows.begin(), rows.end(), begin);
    state.batch = evaluator.data->get(rows);
    predict_batch(state, engine, parts);
  }
  engine.run_event(Event::kPredictEnd);
  set_context(*state.model, nullptr);
  return parts;
}

std::vector<Hdf5Array> arrays_of(const Parts& parts) {
  std::vector<Hdf5Array> arrays;
  for (const auto& [name, tensors] : parts) {
    std::string path = "output" + (name.empty() ? "" : "/" + name);
    std::replace(path.begin(), path.end(), '.', '/');
    arrays.push_back(hdf5_array(path, at::cat(tensors)));
  }
  return arrays;
}

void write(const PredictOptions& options, const std::vector<Hdf5Array>& arrays) try {
  PosixDisk disk;
  write_hdf5(disk, options.out, arrays);
} catch (const OperatingError& error) {
  Setting(options.out, "--out", {"command line"}).fail(error.what());
}

std::string predicted(const Job& job, const PredictOptions& options) {
  const Evaluator& evaluator = evaluator_of(job, options.evaluator);
  LoneModel model(job, options.checkpoint);
  const auto arrays = arrays_of(predictions(model.state, model.engine, evaluator));
  write(options, arrays);
  std::ostringstream out;
  out << model.weights << '\n';
  for (const auto& array : arrays) out << array.path << ' ' << shape_text(array.shape) << '\n';
  out << "written to " << options.out << '\n';
  return out.str();
}

}  // namespace

std::string predict_text(const Setting& recipe, const PredictOptions& options) {
  return told_of(recipe, [&] { return predicted(lone_job(recipe, 1), options); });
}

}  // namespace tutti

#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "commands/trainer.h"
#include "models/torch/torch_module.h"

namespace tutti {

// The main of a program that trains: completes the options by the arguments, with the names of `tutti train`
// (RECIPE, --set KEY=VALUE, --run-dir, --resume, --local-ranks, --json; --help explains), and trains. Returns
// the exit code of Trainer::fit. Under mpirun every rank calls; MPI starts and ends here.
int train_program(int argc, char** argv, Trainer::Options options = {});

// The options, completed by the arguments, for a program with a Trainer of its own. A RECIPE among the
// arguments replaces `options.recipe`; at least one of the two is needed. Throws UserError; --help prints the
// names and ends the process.
Trainer::Options with_arguments(Trainer::Options options, int argc, char** argv);

// A classifier (LayerClassifier) that is a Net, a class derived from torch::nn::Module: made by
// Net(const SampleSpec&) if there is such a constructor, else by Net(). For Trainer::Options::model.
template <class Net>
std::shared_ptr<Model> module_classifier(const SampleSpec& samples, uint64_t seed = 0) {
  return std::make_shared<LayerClassifier>(adapt(
      [&] {
        if constexpr (std::is_constructible_v<Net, const SampleSpec&>)
          return std::make_shared<Net>(samples);
        else
          return std::make_shared<Net>();
      },
      seed));
}

// The main of a program that trains such a classifier; its recipe says [model] kind = "program".
template <class Net>
int train_program(int argc, char** argv, Trainer::Options options = {}) {
  options.model = [](const SampleSpec& samples) { return module_classifier<Net>(samples); };
  return train_program(argc, argv, std::move(options));
}

}  // namespace tutti

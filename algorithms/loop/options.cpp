#include "algorithms/loop/options.h"

#include <memory>

#include "algorithms/augmentation/shared_options.h"
#include "models/zoo/catalog.h"

namespace tutti {

Kind<DistillationOptions> DistillationOptions::kind() {
  using Options = DistillationOptions;
  return {"distillation",
          "Trains on the scores of another model too, the teacher, of the same classes or tokens: with the "
          "weights and running statistics that evaluations use. Each rank holds all of the teacher.",
          {option("teacher", &Options::teacher,
                  "a checkpoint's folder, or a run's: its newest when this run first begins; a folder of "
                  "Hugging Face's; a program of torch.export or TorchScript; or { kind = \"resnet\", depth = "
                  "50, weights = \"resnet50.pth\" }")
               .each(std::make_shared<const Catalog>(model_catalog()))
               .as(KeyType::kPath)
               .required(),
           option("temperature", &Options::temperature, "divides the scores of both").more_than(0),
           fraction<Options>("weight", &Options::weight,
                             "of the teacher; 1 - weight is that of the model's own loss")},
          {.functions = {"distillation_loss"},
           .header = "algorithms/loop/distillation.h",
           .call = "const at::Tensor divergence = distillation_loss(scores, of_teacher, counted, 2.0);",
           .paper = "Hinton et al. 2015, arXiv:1503.02531",
           .models = "classifiers and language models",
           .effect = "a small model that is nearly as good as a large one",
           .example = "teacher = \"runs/large\"\ntemperature = 2.0\nweight = 0.5"}};
}

Kind<DPOOptions> DPOOptions::kind() {
  using Options = DPOOptions;
  return {"dpo",
          "Trains a language model on pairs of answers to a prompt, the chosen and the rejected one, beside "
          "a reference that is not trained: direct preference optimisation. Each rank holds all of the "
          "reference.",
          {option("reference", &Options::reference,
                  "as teacher of distillation; when absent the weights that the run starts from: those of "
                  "[model], or of checkpoint.load_path with load_weights_only")
               .each(std::make_shared<const Catalog>(model_catalog()))
               .as(KeyType::kPath),
           option("beta", &Options::beta, "how close the model stays to the reference; less is freer")
               .more_than(0)},
          {.functions = {"dpo_loss"},
           .header = "algorithms/loop/dpo.h",
           .call = "const at::Tensor loss = dpo_loss(policy, reference, 0.1);",
           .paper = "Rafailov et al. 2023, arXiv:2305.18290",
           .models = "language models",
           .effect = "answers that people prefer, without a reward model",
           .example = "beta = 0.1"}};
}

Kind<EMAOptions> EMAOptions::kind() {
  using Options = EMAOptions;
  return {
      "ema",
      "Evaluates, predicts and exports with an exponential moving average of the weights; Composer's EMA.",
      {option("half_life", &Options::half_life,
              "time after which a weight counts half in the average; 1000ba when smoothing is absent too")
           .in_units({"ba", "ep"})
           .more_than(0),
       option("smoothing", &Options::smoothing,
              "factor of the old average in an update, in place of half_life")
           .at_least(0)
           .at_most(1),
       option("ema_start", &Options::ema_start, "when averaging begins")
           .written("0.0dur")
           .in_units({"dur", "ba", "ep"}),
       option("update_interval", &Options::update_interval,
              "time between updates; one unit of half_life when absent, or one batch")
           .in_units({"ba", "ep"})
           .more_than(0)},
      {.composer = "EMA",
       .functions = {"compute_ema"},
       .header = "algorithms/loop/ema.h",
       .call = "compute_ema(weights, averages, 0.99);",
       .paper = "Polyak and Juditsky 1992",
       .models = "all",
       .effect = "a better model at evaluations, most where the learning rate is still large"}};
}

Kind<GradientClippingOptions> GradientClippingOptions::kind() {
  using Options = GradientClippingOptions;
  return {
      "gradient_clipping",
      "Limits the size of gradients; Composer's GradientClipping.",
      {option(
           "clipping_type", &Options::clipping_type,
           "norm: the norm of all gradients together; value: each number; adaptive: the norm of each unit, "
           "relative to the norm of its weights",
           {{"norm", ClippingType::kNorm},
            {"value", ClippingType::kValue},
            {"adaptive", ClippingType::kAdaptive}})
           .required(),
       option("clipping_threshold", &Options::clipping_threshold,
              "the largest norm or value; adaptive: the largest ratio to the norm of the weights")
           .required()
           .more_than(0)},
      {.composer = "GradientClipping",
       .functions = {"apply_gradient_clipping"},
       .header = "algorithms/loop/gradient_clipping.h",
       .call = "apply_gradient_clipping(views, ClippingType::kNorm, 1.0);",
       .paper = "Pascanu et al. 2013, arXiv:1211.5063; adaptive: Brock et al. 2021, arXiv:2102.06171",
       .models = "all",
       .effect = "no steps that ruin the weights, and larger learning rates",
       .example = "clipping_type = \"norm\"\nclipping_threshold = 1.0"}};
}

Kind<LabelSmoothingOptions> LabelSmoothingOptions::kind() {
  using Options = LabelSmoothingOptions;
  return {"label_smoothing",
          "Moves targets towards equal weights of all classes; Composer's LabelSmoothing.",
          {fraction<Options>("smoothing", &Options::smoothing,
                             "0 leaves targets as they are, 1 makes all classes equal"),
           target_array<Options>()},
          {.composer = "LabelSmoothing",
           .functions = {"smooth_labels"},
           .header = "algorithms/loop/label_smoothing.h",
           .call = "const at::Tensor smoothed = smooth_labels(logits, targets, 0.1);",
           .paper = "Szegedy et al. 2015, arXiv:1512.00567",
           .models = "classifiers",
           .effect = "better generalisation and calibration"}};
}

Kind<LayerFreezingOptions> LayerFreezingOptions::kind() {
  using Options = LayerFreezingOptions;
  return {"layer_freezing",
          "Stops training the first layers, more of them as time goes on; Composer's LayerFreezing.",
          {fraction<Options>("freeze_start", &Options::freeze_start, "from this part of the training on"),
           fraction<Options>("freeze_level", &Options::freeze_level,
                             "part of the layers that is frozen in the end; never the last")
               .written("1.0")},
          {.composer = "LayerFreezing",
           .functions = {"freeze_layers"},
           .header = "algorithms/loop/layer_freezing.h",
           .call = "freeze_layers(model, 0.75);",
           .paper = "Brock et al. 2017, arXiv:1706.04983; Raghu et al. 2017, arXiv:1706.05806",
           .models = "all, for trainings of several epochs",
           .effect = "faster steps in the last part of the training, for some accuracy"}};
}

Kind<SAMOptions> SAMOptions::kind() {
  using Options = SAMOptions;
  return {"sam",
          "Takes gradients a little uphill, by a second pass over the batch, to find flat minima; Composer's "
          "SAM.",
          {option("rho", &Options::rho, "length of the step uphill").more_than(0),
           option("epsilon", &Options::epsilon, "added to the norm of the gradients").at_least(0),
           option("interval", &Options::interval, "steps from one second pass to the next").at_least(1)},
          {.composer = "SAM",
           .header = "algorithms/loop/sam.h",
           .paper = "Foret et al. 2021, arXiv:2010.01412",
           .models = "all; most for images",
           .effect = "better generalisation for twice the time a step, or less with a larger interval"}};
}

Kind<SelectiveBackpropOptions> SelectiveBackpropOptions::kind() {
  using Options = SelectiveBackpropOptions;
  return {
      "selective_backprop",
      "Trains on the samples of each batch that have high losses, which each rank chooses among its own; "
      "Composer's SelectiveBackprop.",
      {fraction<Options>("start", &Options::start, "from this part of the training on"),
       fraction<Options>("end", &Options::end, "up to this part of the training"),
       fraction<Options>("keep", &Options::keep, "part of the samples that is kept").more_than(0),
       option("scale_factor", &Options::scale_factor,
              "size of the images when the samples are chosen, as a part of their full size")
           .written("1.0")
           .more_than(0)
           .at_most(1),
       option("interrupt", &Options::interrupt, "every so many batches all samples are kept; 0: never")
           .at_least(0),
       input_array<Options>(), target_array<Options>()},
      {.composer = "SelectiveBackprop",
       .functions = {"select_using_loss", "should_selective_backprop"},
       .header = "algorithms/loop/selective_backprop.h",
       .call =
           "const auto [hard, labels] = select_using_loss(inputs, targets, model, losses, *random_draws());",
       .paper = "Jiang et al. 2019, arXiv:1910.00762",
       .models = "classifiers",
       .effect = "faster steps where backward is dear, for a little accuracy"}};
}

Kind<SeqLengthWarmupOptions> SeqLengthWarmupOptions::kind() {
  using Options = SeqLengthWarmupOptions;
  return {
      "seq_length_warmup",
      "Trains on short sequences first, which grow to their full length; Composer's SeqLengthWarmup.",
      {fraction<Options>("duration", &Options::duration, "part of the training in which they grow"),
       option("min_seq_length", &Options::min_seq_length, "length at first, in tokens").at_least(1),
       option("max_seq_length", &Options::max_seq_length, "length in the end").at_least(1),
       option("step_size", &Options::step_size, "tokens that the length grows by at once").at_least(1),
       option<Options>("truncate", &Options::truncate,
                       "cut sequences off; false: make more sequences of the tokens"),
       option<Options>("preserve_end_of_sequence", &Options::preserve_end_of_sequence,
                       "keep the last token of a sequence that is cut off; needs the array attention_mask")},
      {.composer = "SeqLengthWarmup",
       .functions = {"set_batch_sequence_length"},
       .header = "algorithms/loop/seq_length_warmup.h",
       .call = "const Batch shorter = set_batch_sequence_length(batch, 64);",
       .paper = "Li et al. 2021, arXiv:2108.06084",
       .models = "language models",
       .effect = "faster first steps, and larger learning rates without divergence"}};
}

Kind<SWAOptions> SWAOptions::kind() {
  using Options = SWAOptions;
  return {
      "swa",
      "Averages the weights of the last part of training; Composer's SWA.",
      {option("swa_start", &Options::swa_start, "when averaging begins").in_units({"dur", "ba", "ep"}),
       option("swa_end", &Options::swa_end,
              "from when on the averages are trained on; in the unit of swa_start, and later")
           .in_units({"dur", "ba", "ep"}),
       option("update_interval", &Options::update_interval, "time between updates")
           .in_units({"ba", "ep"})
           .more_than(0),
       option("schedule_swa_lr", &Options::schedule_swa_lr,
              "move the learning rate to swa_lr while averaging"),
       option("anneal_strategy", &Options::anneal_strategy, "how the learning rate moves",
              {{"linear", AnnealStrategy::kLinear}, {"cos", AnnealStrategy::kCosine}}),
       option("anneal_steps", &Options::anneal_steps, "updates in which the learning rate moves").at_least(1),
       option("swa_lr", &Options::swa_lr, "the schedule's rate when averaging begins when absent")
           .at_least(0),
       option(
           "replace_ema", &Options::replace_ema,
           "at swa_end EMA's averages, which evaluations and exports use, become SWA's too; false: they stay "
           "of weights from before; when absent they stay, with a warning")},
      {.composer = "SWA",
       .header = "algorithms/loop/swa.h",
       .paper = "Izmailov et al. 2018, arXiv:1803.05407",
       .models = "all",
       .effect = "better generalisation at no cost a step"}};
}

}  // namespace tutti

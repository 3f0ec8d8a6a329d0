#include "job/names/foreign_names.h"

#include "job/names/composer_names.h"
#include "job/names/foundry_names.h"
#include "job/names/name_list.h"
#include "job/names/transformers_names.h"

namespace tutti {
namespace {

using Foreign = std::vector<ForeignName>;

constexpr const char* kOfScripts = "PyTorch's";
constexpr const char* kOfLightning = "Lightning's";
constexpr const char* kOfDiffusers = "diffusers'";

// Arguments of PyTorch's usual scripts and of Hugging Face's.
Foreign of_scripts() {
  const char* time = "as in max_duration = \"20ep\"; steps are \"500ba\"";
  const char* clipping = "with clipping_type = \"norm\" or \"value\", and clipping_threshold";
  Foreign names;
  for (const char* name : {"num_epochs", "epochs", "n_epochs", "num_train_epochs", "max_iters", "num_steps",
                           "train_steps", "max_iterations"})
    names.push_back({name, "[train] max_duration", time, kOfScripts});
  for (const char* name : {"learning_rate", "base_lr"})
    names.push_back({name, "[optimizer] lr", "", kOfScripts});
  for (const char* name : {"max_grad_norm", "grad_clip", "clip_grad_norm", "grad_clip_norm"})
    names.push_back({name, "[[algorithms]] kind = \"gradient_clipping\"", clipping, kOfScripts});
  for (const char* name : {"gradient_accumulation_steps", "accumulation_steps"})
    names.push_back({name, "[train] grad_accum", "", kOfScripts});
  for (const char* name :
       {"gradient_checkpointing", "gradient_checkpointing_enable", "checkpoint_activations"})
    names.push_back(
        {name, "[sharding] activation_checkpointing", "true: of every block of the model", kOfScripts});
  for (const char* name : {"Adadelta", "Adamax", "ASGD", "LBFGS", "RAdam", "Rprop", "SparseAdam"})
    names.push_back({name, "", "not carried over: a plugin brings an optimizer", kOfScripts});
  names.push_back({"lr_scheduler", "[scheduler]", "", kOfScripts});
  names.push_back({"loss_fn", "[model] loss", "", kOfScripts});
  names.push_back({"criterion", "[model] loss", "", kOfScripts});
  names.push_back({"log_interval", "[train] progress_interval", "", kOfScripts});
  names.push_back({"encoder_weights", "[model] weights",
                   "a file; docs/checkpoints.md says how torchvision's ResNets go into a unet",
                   "segmentation_models_pytorch's"});
  names.push_back({"nproc_per_node", "",
                   "not carried over: `mpirun -np 4 tutti train RECIPE` says how many ranks", kOfScripts});
  return names;
}

Foreign of_pytorch() {
  return NameList(kOfScripts)
      .add({"DistributedDataParallel", "DDP"}, "[collectives]", "nothing is wrapped")
      .add({"FullyShardedDataParallel", "FSDP", "fully_shard"}, "[sharding]", "as strategy = \"full\"")
      .add({"nn.Sequential", "nn.Linear", "nn.Conv2d", "nn.LSTM"}, "[model] kind = \"sequential\"")
      .add({"VisionTransformer"}, "[model] kind = \"vit\"")
      .add({"lstm", "gru"}, "[model] kind = \"sequential\"", "a layer of its list")
      .add({"random_split"}, "[data.eval]", "evaluations have data of their own")
      .add({"MDSWriter"}, "[data.train] kind = \"mds\"", "reads what it wrote")
      .add({"DistributedSampler"}, "[data.train] shuffle", "ranks take their parts of each batch")
      .leave_out({"WeightedRandomSampler"}, "losses have weights of classes instead")
      .leave_out({"zero_grad", "no_grad", "loss.backward", "optimizer.step", "set_epoch"},
                 "the trainer does it")
      .all();
}

Foreign of_lightning() {
  const char* clipping = "clipping_type = \"norm\" or \"value\", and clipping_threshold";
  const char* python =
      "not carried over: torch.export writes a model of Python to a file (docs/your_model.md); what else a "
      "module does is in the recipe, or in a plugin in C++ (docs/models.md)";
  const char* ranks = "not carried over: `mpirun -np 4 tutti train RECIPE` says how many ranks train";
  return {
      {"max_epochs", "[train] max_duration", "as in max_duration = \"20ep\"", kOfLightning},
      {"max_steps", "[train] max_duration", "as in max_duration = \"500ba\"", kOfLightning},
      {"max_time", "[train] max_duration", "as in max_duration = \"1h30m\"", kOfLightning},
      {"gradient_clip_val", "[[algorithms]] kind = \"gradient_clipping\"", clipping, kOfLightning},
      {"gradient_clip_algorithm", "[[algorithms]] kind = \"gradient_clipping\"", clipping, kOfLightning},
      {"accumulate_grad_batches", "[train] grad_accum", "", kOfLightning},
      {"val_check_interval", "[train] eval_interval", "as in eval_interval = \"100ba\"", kOfLightning},
      {"check_val_every_n_epoch", "[train] eval_interval", "as in eval_interval = \"2ep\"", kOfLightning},
      {"log_every_n_steps", "[train] progress_interval", "", kOfLightning},
      {"enable_progress_bar", "[train] progress_bar", "", kOfLightning},
      {"deterministic", "[train] deterministic_mode", "", kOfLightning},
      {"default_root_dir", "", "not carried over: `--run-dir DIR` names the folder of a run", kOfLightning},
      {"ckpt_path", "[checkpoint] resume", "", kOfLightning},
      {"ModelCheckpoint", "[checkpoint]",
       "its monitor and save_top_k are best = { metric = ..., keep = ... }", kOfLightning},
      {"save_top_k", "[checkpoint] best", "as in best = { metric = \"MulticlassAccuracy\", keep = 2 }",
       kOfLightning},
      {"dirpath", "[checkpoint] save_folder", "", kOfLightning},
      {"accelerator", "[device]", "as kind = \"cpu\"", kOfLightning},
      {"devices", "", ranks, kOfLightning},
      {"num_nodes", "", ranks, kOfLightning},
      {"val_dataloaders", "[data.eval]", "each further one is one of [[evaluators]]", kOfLightning},
      {"EarlyStopping", "[[callbacks]]", "as kind = \"early_stopper\"", kOfLightning},
      {"LearningRateMonitor", "[[callbacks]]", "as kind = \"lr_monitor\"", kOfLightning},
      {"TQDMProgressBar", "[train] progress_bar", "", kOfLightning},
      {"configure_optimizers", "[optimizer]", "", kOfLightning},
      {"LightningModule", "", python, kOfLightning},
      {"training_step", "", python, kOfLightning},
      {"on_train_epoch_end", "", python, kOfLightning},
      {"on_train_batch_end", "", python, kOfLightning},
      {"limit_train_batches", "[data.train] subset_num_batches", "", kOfLightning},
  };
}

Foreign of_diffusers() {
  return {
      {"UNet2DModel", "[model] kind = \"diffusion_unet\"", "", kOfDiffusers},
      {"DDPMScheduler", "[model] kind = \"diffusion_unet\"", "its options are keys of the model",
       kOfDiffusers},
      {"DDPMPipeline", "[model] kind = \"hf\"", "a folder that save_pretrained wrote", kOfDiffusers},
      {"DDIMScheduler", "tutti generate", "draws images by it, with --output FILE", kOfDiffusers},
  };
}

}  // namespace

const std::vector<ForeignName>& foreign_names() {
  static const Foreign names = [] {
    Foreign all = composer_names();
    for (const auto& part :
         {of_scripts(), of_pytorch(), of_lightning(), foundry_names(), transformers_names(), of_diffusers()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return names;
}

}  // namespace tutti

#include "job/names/foreign_names.h"

#include "job/names/composer_names.h"
#include "job/names/foundry_names.h"
#include "job/names/name_list.h"
#include "job/names/transformers_names.h"

namespace tutti {
namespace {

using Foreign = std::vector<ForeignName>;

constexpr const char* kOfScripts = "PyTorch's";

// Arguments of PyTorch's usual scripts and of Hugging Face's.
Foreign of_scripts() {
  return NameList(kOfScripts)
      .add({"num_epochs", "epochs", "n_epochs", "num_train_epochs", "max_iters", "num_steps", "train_steps",
            "max_iterations"},
           "[train] max_duration", "as in max_duration = \"20ep\"; steps are \"500ba\"")
      .add({"learning_rate", "base_lr"}, "[optimizer] lr")
      .add({"max_grad_norm", "grad_clip", "clip_grad_norm", "grad_clip_norm"},
           "[[algorithms]] kind = \"gradient_clipping\"",
           "with clipping_type = \"norm\" or \"value\", and clipping_threshold")
      .add({"gradient_accumulation_steps", "accumulation_steps"}, "[train] grad_accum")
      .add({"gradient_checkpointing", "gradient_checkpointing_enable", "checkpoint_activations"},
           "[sharding] activation_checkpointing", "true: of every block of the model")
      .add({"lr_scheduler"}, "[scheduler]")
      .add({"loss_fn", "criterion"}, "[model] loss")
      .add({"log_interval"}, "[train] progress_interval")
      .leave_out({"Adadelta", "Adamax", "ASGD", "LBFGS", "RAdam", "Rprop", "SparseAdam"},
                 "a plugin brings an optimizer")
      .leave_out({"nproc_per_node"}, "`mpirun -np 4 tutti train RECIPE` says how many ranks")
      .all();
}

Foreign of_segmentation_models() {
  return NameList("segmentation_models_pytorch's")
      .add({"encoder_weights"}, "[model] weights",
           "a file; docs/checkpoints.md says how torchvision's ResNets go into a unet")
      .all();
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
  return NameList("Lightning's")
      .add({"max_epochs"}, "[train] max_duration", "as in max_duration = \"20ep\"")
      .add({"max_steps"}, "[train] max_duration", "as in max_duration = \"500ba\"")
      .add({"max_time"}, "[train] max_duration", "as in max_duration = \"1h30m\"")
      .add({"gradient_clip_val", "gradient_clip_algorithm"}, "[[algorithms]] kind = \"gradient_clipping\"",
           "clipping_type = \"norm\" or \"value\", and clipping_threshold")
      .add({"accumulate_grad_batches"}, "[train] grad_accum")
      .add({"val_check_interval"}, "[train] eval_interval", "as in eval_interval = \"100ba\"")
      .add({"check_val_every_n_epoch"}, "[train] eval_interval", "as in eval_interval = \"2ep\"")
      .add({"log_every_n_steps"}, "[train] progress_interval")
      .add({"enable_progress_bar", "TQDMProgressBar"}, "[train] progress_bar")
      .add({"deterministic"}, "[train] deterministic_mode")
      .add({"ckpt_path"}, "[checkpoint] resume")
      .add({"ModelCheckpoint"}, "[checkpoint]",
           "its monitor and save_top_k are best = { metric = ..., keep = ... }")
      .add({"save_top_k"}, "[checkpoint] best", "as in best = { metric = \"MulticlassAccuracy\", keep = 2 }")
      .add({"dirpath"}, "[checkpoint] save_folder")
      .add({"accelerator"}, "[device]", "as kind = \"cpu\"")
      .add({"val_dataloaders"}, "[data.eval]", "each further one is one of [[evaluators]]")
      .add({"EarlyStopping"}, "[[callbacks]]", "as kind = \"early_stopper\"")
      .add({"LearningRateMonitor"}, "[[callbacks]]", "as kind = \"lr_monitor\"")
      .add({"configure_optimizers"}, "[optimizer]")
      .add({"limit_train_batches"}, "[data.train] subset_num_batches")
      .leave_out({"default_root_dir"}, "`--run-dir DIR` names the folder of a run")
      .leave_out({"devices", "num_nodes"}, "`mpirun -np 4 tutti train RECIPE` says how many ranks train")
      .leave_out({"LightningModule", "training_step", "on_train_epoch_end", "on_train_batch_end"},
                 "torch.export writes a model of Python to a file (docs/your_model.md); what else a module "
                 "does is in the recipe, or in a plugin in C++ (docs/models.md)")
      .all();
}

Foreign of_diffusers() {
  return NameList("diffusers'")
      .add({"UNet2DModel"}, "[model] kind = \"diffusion_unet\"")
      .add({"DDPMScheduler"}, "[model] kind = \"diffusion_unet\"", "its options are keys of the model")
      .add({"DDPMPipeline"}, "[model] kind = \"hf\"", "a folder that save_pretrained wrote")
      .add({"DDIMScheduler"}, "tutti generate", "draws images by it, with --output FILE")
      .all();
}

}  // namespace

const std::vector<ForeignName>& foreign_names() {
  static const Foreign names = [] {
    Foreign all = composer_names();
    for (const auto& part : {of_scripts(), of_segmentation_models(), of_pytorch(), of_lightning(),
                             foundry_names(), transformers_names(), of_diffusers()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return names;
}

}  // namespace tutti

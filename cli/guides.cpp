#include "cli/guides.h"

#include <algorithm>

#include "runtime/nearest_name.h"

namespace tutti {
namespace {

using Guides = std::vector<Guide>;

constexpr const char* kModelOfPython = "docs/your_model.md";
constexpr const char* kData = "docs/data.md";

Guides of_unets() {
  return {
      {{"diffusion", "diffusion model", "ddpm", "ddim", "diffusers", "denoising diffusion",
        "image generation"},
       "diffusers' UNet2DModel, trained by the noise of DDPM; `tutti generate` draws images by DDPM or DDIM.",
       {"[model] kind = \"diffusion_unet\"", "tutti generate", "docs/diffusion.md"}},
      {{"stable diffusion", "latent diffusion", "sdxl", "text to image"},
       "Conditioned networks are not in the zoo: write one with its noise and loss to a file by "
       "torch.export, with loss_output; the zoo's diffusion model draws images without a text.",
       {"[model] kind = \"exported\"", "[model] kind = \"diffusion_unet\"", kModelOfPython}}};
}

Guides of_models() {
  return {
      {{"vision transformer", "image transformer", "deit"},
       "torchvision's ViT, with its names: its weights load as they are.",
       {"[model] kind = \"vit\"", "[model] weights"}},
      {{"swin", "convnext", "efficientnet", "timm", "densenet", "mobilenet", "vgg", "whisper", "wav2vec"},
       "Write the model to a file by torch.export; tutti trains that.",
       {"[model] kind = \"exported\"", kModelOfPython}},
      {{"mistral", "qwen", "llama 2", "llama 3", "qwen 2", "qwen 3", "rms norm", "grouped query attention",
        "gqa", "swiglu"},
       "The family of Llama; [model] kind = \"hf\" reads a folder with its weights.",
       {"[model] kind = \"llama\"", "[model] kind = \"hf\""}},
      {{"gemma", "phi", "t5", "opt", "falcon", "mamba", "deepseek"},
       "Write the model to a file by torch.export; tutti trains that.",
       {"[model] kind = \"exported\"", kModelOfPython}},
      {{"gpt2", "nanogpt", "mpt", "language model", "llm", "causal lm"},
       "A language model of GPT-2's kind; [model] kind = \"hf\" reads a folder with its weights.",
       {"[model] kind = \"gpt\"", "[model] kind = \"hf\"", "tutti convert"}},
      {{"deeplab", "fpn"},
       "Write the network to a file by torch.export; tutti trains that, with a target of any shape.",
       {"[model] kind = \"exported\"", "loss mse", kModelOfPython}},
      {{"lstm", "gru", "recurrent", "recurrent network"},
       "Layers of a list: LSTM and GRU with batch_first=True; Select(1, -1) is the last step.",
       {"[model] kind = \"sequential\""}},
      {{"rnn"},
       "LSTM and GRU are layers of a list; of others, write the network to a file by torch.export.",
       {"[model] kind = \"sequential\"", "[model] kind = \"exported\""}},
      {{"cnn", "convolution", "conv net", "convolutional network"},
       "Convolutions in a list of layers, or a residual network.",
       {"[model] kind = \"sequential\"", "[model] kind = \"resnet\"", "[model] kind = \"resnet_cifar\""}},
      {{"own model", "custom model", "my model", "nn module", "pytorch model", "python",
        "bring your own model"},
       "Of Python: write it to a file by torch.export, whatever its class. Of C++: a plugin.",
       {"[model] kind = \"exported\"", kModelOfPython, "docs/models.md"}},
      {{"onnx", "tensorrt", "serving", "deployment", "coreml"},
       "A run leaves weights that PyTorch loads under the same names; its exporters do the rest.",
       {"tutti export", "docs/hand_over.md"}},
      {{"huggingface", "transformers", "from pretrained", "pretrained", "hub", "pretrained model"},
       "A folder of Hugging Face's transformers is read as it is; other weights by name.",
       {"[model] kind = \"hf\"", "[model] weights", "tutti export", "docs/your_model.md"}},
      {{"fine tune", "fine tuning", "transfer learning", "transfer"},
       "Start from weights of elsewhere, and leave out the head that does not fit.",
       {"[model] weights", "[model] weights_ignore", "[model] kind = \"hf\"",
        "[[algorithms]] kind = \"lora\"", kModelOfPython}},
      {{"lora", "peft", "adapter", "adapters", "qlora", "dora"},
       "Adapters of frozen layers, which PEFT writes and reads; QLoRA and DoRA are not there.",
       {"[[algorithms]] kind = \"lora\"", "tutti export", "docs/hand_over.md"}},
      {{"get peft model", "merge and unload"},
       "Training adapts the layers that match; `tutti export` writes adapters, or weights with them merged "
       "in.",
       {"[[algorithms]] kind = \"lora\"", "tutti export"}},
      {{"ia3", "prefix tuning", "prompt tuning", "p tuning", "neftune"},
       "Not there: of the ways to tune few parameters tutti has LoRA, and patterns of what is frozen.",
       {"[[algorithms]] kind = \"lora\"", "[model] freeze"}},
      {{"quantization", "int8", "int4", "gptq", "awq", "bitsandbytes"},
       "Not there: tutti trains in 32 or 16 bits. Export the weights and quantize them afterwards.",
       {"[train] precision", "tutti export"}},
      {{"freeze", "frozen", "unfreeze", "freezing", "requires grad", "linear probe"},
       "Parameters that match patterns are not trained; or layers stop training one after another.",
       {"[model] freeze", "[[algorithms]] kind = \"layer_freezing\""}},
      {{"rope", "rotary", "positional encoding", "position embedding"},
       "llama has rotary positions, gpt learned ones, which ALiBi may replace.",
       {"[model] kind = \"llama\"", "[[algorithms]] kind = \"alibi\""}},
      {{"flash attention", "sdpa", "attention kernel"},
       "Attention takes the fastest kernel that libtorch has for the sizes; nothing is to be set.",
       {"[model] kind = \"gpt\""}},
  };
}

Guides of_targets() {
  return {
      {{"regression", "regressor", "mse loss", "continuous target"},
       "A target of numbers, and a loss of differences.",
       {"loss mse", "loss smooth_l1", "metric MeanSquaredError"}},
      {{"mae", "mean absolute error"}, "The mean of absolute differences.", {"loss l1"}},
      {{"huber", "huber loss"}, "delta times smooth_l1 with beta = delta.", {"loss smooth_l1"}},
      {{"classification", "classifier"},
       "The default: cross entropy of class numbers. Data of folders and tables name their classes.",
       {"loss cross_entropy", "metric MulticlassAccuracy"}},
      {{"u-net", "smp", "segmentation models", "segmentation model", "segmentation models pytorch"},
       "The U-Net of segmentation_models_pytorch over a ResNet, whose weights load as they are.",
       {"[model] kind = \"unet\"", "[model] weights", "metric MIoU"}},
      {{"segmentation", "semantic segmentation", "mask", "masks", "pixel labels"},
       "A target of one class a pixel; crops and flips move image and mask alike.",
       {"[model] kind = \"unet\"", "loss cross_entropy", "loss dice", "metric MIoU", kData}},
      {{"detection", "object detection", "bounding boxes", "yolo", "bounding box"},
       "Boxes follow crops and flips. Detectors and mean average precision are not there yet.",
       {"[data.train] boxes"}},
      {{"multilabel", "tags"},
       "A target of zeros and ones for each class.",
       {"loss bce_with_logits", "metric MultilabelF1Score"}},
      {{"class weights", "class weight", "class imbalance", "imbalanced", "imbalance", "weighted loss"},
       "Rare classes weigh more in the loss.",
       {"loss cross_entropy", "loss bce_with_logits", "loss focal"}},
      {{"custom loss", "own loss", "custom metric", "own metric", "custom dataset", "own dataset",
        "custom optimizer", "own optimizer", "custom callback", "own callback", "extend"},
       "A library of yours in C++ brings it, and recipes name it.",
       {"[plugins]", "docs/models.md"}},
      {{"auc", "roc", "auroc", "roc auc", "average precision", "map"},
       "Areas under curves, of one class or of several labels.",
       {"metric BinaryAUROC", "metric MultilabelAUROC", "metric BinaryAveragePrecision"}},
      {{"iou", "intersection over union", "jaccard"}, "Of segmentations.", {"metric MIoU", "metric Dice"}},
      {{"test set", "test", "holdout", "test split"},
       "Each further set of data is an evaluator; `tutti eval` measures a checkpoint on it.",
       {"[[evaluators]]", "tutti eval"}},
  };
}

Guides of_data() {
  return {
      {{"zarr", "lmdb", "tfrecord", "arrow", "feather", "hugging face datasets", "load dataset", "ffcv"},
       "Not read: write the data to Parquet, HDF5 or tar files, which Python does in a few lines.",
       {"[data.train] kind = \"parquet\"", "[data.train] kind = \"webdataset\"",
        "[data.train] kind = \"hdf5\"", kData}},
      {{"tokenizer", "tokenizers", "bpe", "sentencepiece", "wordpiece", "unigram", "tiktoken", "vocab"},
       "Hugging Face's tokenizer.json of any kind, beside the texts.",
       {"[data.train] kind = \"text\"", "tutti tokenize", "docs/your_data.md"}},
      {{"jpeg", "jpg", "png", "webp", "image", "images", "imagenet", "image folder", "pictures", "photos"},
       "A folder with a folder for each class, or tar files. `tutti init FOLDER` writes a recipe.",
       {"[data.train] kind = \"image_folder\"", "[data.train] kind = \"webdataset\"", "docs/your_data.md"}},
      {{"pandas", "dataframe", "excel", "table", "tabular", "sql"},
       "Write the table to CSV or Parquet; columns are named, numbers normalised, texts made classes.",
       {"[data.train] kind = \"csv\"", "[data.train] kind = \"parquet\""}},
      {{"npz", "npy", "arrays", "ndarray"},
       "Arrays that numpy saved, side by side.",
       {"[data.train] kind = \"numpy\"", "[data.train] kind = \"tokens\""}},
      {{"json", "jsonl", "json lines", "text", "texts", "txt", "corpus", "nlp", "wikitext", "c4", "the pile",
        "openwebtext", "fineweb"},
       "A document a line, in a field that you name, or a document a file.",
       {"[data.train] kind = \"text\"", "docs/your_data.md"}},
      {{"s3", "gcs", "cloud storage", "object store", "remote data", "azure", "r2"},
       "A command of yours fetches shards while the run reads; checkpoints go to file systems.",
       {"[data.train] kind = \"mds\"", kData}},
      {{"streaming", "streamingdataset", "mosaicml streaming", "shards"},
       "Datasets of MosaicML Streaming are read as they are; tar shards, too.",
       {"[data.train] kind = \"mds\"", "[data.train] kind = \"webdataset\""}},
      {{"chat", "instruction tuning", "sft", "instructions", "chat template", "conversation", "prompt", "trl",
        "axolotl", "unsloth"},
       "Prompts and messages of the user do not count in the loss.",
       {"[data.train] messages_field", "[data.train] prompt_field", kData}},
      {{"pin memory", "pinned memory", "persistent workers", "dataloader", "data loading"},
       "Nothing to be set: threads read ahead, and batches are pinned where a GPU computes.",
       {"[data.train] num_workers", "[data.train] prefetch"}},
      {{"augmentation", "data augmentation", "augment", "augmentations", "autoaugment", "trivial augment"},
       "Transforms of the data, or algorithms that also resume and report.",
       {"[[data.train.transforms]]", "[[algorithms]] kind = \"randaugment\"",
        "[[algorithms]] kind = \"augmix\""}},
      {{"audio", "video", "speech", "point cloud", "time series"},
       "As arrays in HDF5 or numpy, of any shape; there is no decoder for files of this kind.",
       {"[data.train] kind = \"hdf5\"", "[data.train] kind = \"numpy\""}},
  };
}

Guides of_hosts() {
  return {
      {{"infiniband", "rdma", "roce", "ucx", "efa", "interconnect", "network"},
       "MPI and NCCL find the network; their own settings choose another.",
       {"docs/running.md", "[collectives] backend"}},
      {{"master addr", "master port", "rendezvous", "init method", "rdzv", "init process group"},
       "Nothing to be set: mpirun and srun connect the ranks.",
       {"docs/running.md"}},
      {{"cuda visible devices", "gpus per node", "gpu ids", "device ids"},
       "A rank takes the GPU of its number on the host, among those that CUDA_VISIBLE_DEVICES shows.",
       {"[device]", "docs/running.md"}},
      {{"omp num threads", "cpu threads", "intra op", "set num threads", "numa", "affinity", "cpu affinity",
        "pinning", "cpus per task"},
       "Threads of a rank; mpirun and srun bind ranks to cores.",
       {"[device] threads", "docs/running.md"}},
      {{"async checkpoint", "asynchronous checkpoint", "background checkpoint", "async save"},
       "Always: training continues while a checkpoint is written, and waits if the disk is slower.",
       {"[checkpoint] interval", "docs/checkpoints.md"}},
      {{"save best", "best model", "top k checkpoints", "keep last", "save top k"},
       "The newest ones are kept, and the best by a metric.",
       {"[checkpoint] best", "[checkpoint] keep"}},
      {{"memory usage", "gpu memory", "peak memory", "memory profiler", "memory leak", "gpu utilization"},
       "What a step takes is logged; `tutti check` measures it before a run.",
       {"[[callbacks]] kind = \"memory_monitor\"", "[[callbacks]] kind = \"speed_monitor\"", "tutti check"}},
      {{"nfs", "lustre", "shared filesystem", "scratch", "local disk", "file system"},
       "Recipe, data and run folder have the same paths on all hosts; shards may be cached on each.",
       {"docs/running.md", "[checkpoint] save_folder", "[data.train] kind = \"mds\""}},
      {{"exit code", "exit status", "return code"},
       "0: done; 1: it failed; 2: something given is wrong; 3: the last checkpoint was not written.",
       {"docs/running.md"}},
  };
}

Guides of_runs() {
  return {
      {{"slurm",      "sbatch",          "srun",      "pbs",           "kubernetes",   "cluster",
        "ntasks",     "ntasks per node", "gres",      "gpus per task", "partition",    "walltime",
        "time limit", "job array",       "array job", "pmix",          "slurm procid", "slurm ntasks",
        "salloc",     "scancel",         "squeue",    "nodelist",      "mem per cpu",  "node failure"},
       "mpirun or srun starts a rank each: `srun tutti train recipe.toml` in a batch script.",
       {"docs/running.md"}},
      {{"torchrun", "launcher", "nproc per node", "mpirun", "world size", "rank", "ranks", "multi gpu",
        "multi node", "nodes", "hosts", "num processes", "accelerate", "horovod", "hostfile", "machinefile",
        "ssh"},
       "`mpirun -np 4 tutti train recipe.toml` trains on four ranks, a GPU each where there are GPUs.",
       {"docs/running.md", "[collectives]"}},
      {{"gloo", "nccl backend", "all reduce", "ring"},
       "Gradients are summed by NCCL on GPUs, else by MPI, in one order.",
       {"[collectives] backend", "[collectives] reduction"}},
      {{"data parallel", "distributed data parallel", "distributed", "dp", "distributed training"},
       "The default: ranks share each batch, and sum gradients. [sharding] shares weights, too.",
       {"[collectives]", "[sharding] strategy"}},
      {{"zero 1", "zero 2", "zero 3", "stage 3", "zero stage"},
       "ZeRO's stages 1, 2 and 3 are the strategies optimizer, gradients and full.",
       {"[sharding] strategy", "[deepspeed]"}},
      {{"tensor parallel", "pipeline parallel", "model parallel", "sequence parallel", "megatron", "tp", "pp",
        "context parallel", "expert parallel", "moe", "mixture of experts"},
       "Not there yet: ranks share data, and weights by rows.",
       {"[sharding] strategy"}},
      {{"simulator", "simulation", "deterministic simulation", "faults", "fault injection", "chaos"},
       "`tutti simulate` runs all ranks of a job in one process, by seeds, with faults of a plan.",
       {"tutti simulate", "docs/simulation.md"}},
      {{"replay", "debug", "debugging", "reproduce a bug", "post mortem"},
       "`tutti replay RUN` runs a recorded run again on one machine, and names the first other tensor.",
       {"tutti replay", "tutti diff", "docs/journal.md"}},
      {{"bit for bit", "bitwise", "same bits", "reproducibility", "reproducible", "determinism"},
       "A run with a seed has the same bits each time, also after a kill and a resume.",
       {"seed", "[train] deterministic_mode"}},
      {{"crash", "kill", "fault tolerance", "preemption", "preempted", "spot instance", "restart", "requeue",
        "signal", "sigterm", "elastic", "elastic training", "torchelastic"},
       "A run that was cut off continues from its newest checkpoint, on any number of ranks; `tutti stop` "
       "ends one in good order.",
       {"[checkpoint] autoresume", "[checkpoint] resume", "docs/checkpoints.md"}},
      {{"hang", "deadlock", "stuck", "freeze up", "timeout", "nccl timeout"},
       "A silent rank is named with its last action, and the run ends.",
       {"[train] hang_timeout"}},
      {{"profiling", "trace", "chrome trace", "nsight", "tracing"},
       "`tutti timeline RUN` draws what each rank did; [profiler] records operators and kernels.",
       {"tutti timeline", "[profiler]"}},
      {{"mfu", "flops", "tokens per second", "samples per second", "speed", "performance"},
       "Throughput and the use of the device are logged.",
       {"[[callbacks]] kind = \"speed_monitor\""}},
      {{"kv cache", "key value cache", "text generation", "decoding"},
       "`tutti generate` writes text from a run, and keeps keys and values.",
       {"tutti generate", "[[callbacks]] kind = \"generate\""}},
      {{"beam search", "beams", "num beams", "length penalty"},
       "Not there: each next token is sampled, or is the likeliest one.",
       {"tutti generate", "[[callbacks]] do_sample"}},
      {{"temperature", "nucleus sampling", "greedy decoding"},
       "Of generated texts: `tutti generate --temperature`, and of samples while a run trains.",
       {"tutti generate", "[[callbacks]] kind = \"generate\""}},
      {{"compile", "torch compile", "jit", "inductor", "triton", "xla"},
       "Nothing is compiled: C++ calls the kernels. For small models on a GPU there are graphs.",
       {"[train] cuda_graphs"}},
  };
}

Guides of_others() {
  return {
      {{"pruning", "sparsity", "sparse"},
       "Not there: weights are dense. Mixtures of smaller matrices are an algorithm.",
       {"[[algorithms]] kind = \"factorize\""}},
      {{"summary", "model summary", "torchinfo", "parameter count", "number of parameters", "print model"},
       "`tutti check` says how many parameters a model has, `tutti inspect` what a checkpoint holds.",
       {"tutti check", "tutti inspect"}},
      {{"dry run", "fast dev run", "overfit one batch", "smoke test", "sanity check"},
       "`tutti check` tries two steps; of the data a part may be taken.",
       {"tutti check", "[data.train] subset_num_batches"}},
      {{"dpo", "rlhf", "ppo", "reward model", "grpo", "preference"},
       "Not there: a language model is trained on texts, with prompts left out of the loss.",
       {"[data.train] prompt_field", kData}},
      {{"gan", "adversarial", "vae", "autoencoder"},
       "One loss is trained. Several outputs with losses and weights: [[model.losses]]; two networks in "
       "turn: not there.",
       {"[model] kind = \"exported\"", "docs/models.md"}},
      {{"state dict", "load state dict", "save model", "torch save", "gguf"},
       "Checkpoints are HDF5, and their weights go out as safetensors; files of weights come in by name.",
       {"[model] weights", "tutti export", "docs/checkpoints.md"}},
      {{"lightning", "pytorch lightning", "ignite", "fastai", "keras", "jax", "tensorflow"},
       "A recipe says what a Trainer's arguments say; `tutti explain` knows many of their names.",
       {"docs/recipe.md", "docs/compat.md"}},
      {{"loss function", "objective"},
       "Losses by name, with weights and several targets; of your own in C++.",
       {"[model] loss", "docs/models.md"}},
      {{"serve", "server", "api", "speculative decoding", "vllm", "ollama", "llama cpp"},
       "tutti trains; it hands weights over in the layouts of those who serve.",
       {"tutti export", "docs/hand_over.md"}},
      {{"epochs", "num epochs", "number of epochs", "how long"},
       "As in max_duration = \"20ep\"; steps are \"500ba\".",
       {"[train] max_duration"}},
      {{"tpu", "mps", "apple", "rocm", "amd", "xpu"}, "Not there: CPUs, and NVIDIA's GPUs.", {"[device]"}},
      {{"yaml", "hydra", "omegaconf", "llm foundry", "config file"},
       "Recipes are TOML; `tutti convert` writes one from llm-foundry's YAML.",
       {"tutti convert", "docs/recipe.md"}},
      {{"sweep", "hyperparameter search", "optuna", "ray", "grid search", "tuning", "lr finder",
        "cross validation", "k fold"},
       "Not there: a loop in a shell with --set and --run-dir is one; `tutti report` compares the runs.",
       {"tutti train", "tutti report"}},
      {{"docker", "container", "singularity", "apptainer", "conda", "pip", "install", "spack"},
       "`make demo` builds; `cmake --install` puts it where you say.",
       {"docs/running.md"}},
  };
}

Guides of_tasks() {
  return {
      {{"text classification", "sentiment", "glue", "sequence classification", "sst2", "mnli", "imdb",
        "sentence pairs", "text pairs", "nli", "tokenize function", "labelled texts", "labeled texts"},
       "A BERT with a head of classes; its data are columns of texts in CSV, Parquet or JSON lines.",
       {"[model] kind = \"bert_classification\"", "[data.train] kind = \"text_table\"", kData}},
      {{"token classification", "ner", "question answering", "squad", "summarization", "translation",
        "seq2seq", "encoder decoder"},
       "The zoo has no such head: write the model to a file by torch.export; tutti trains that, with a "
       "target of any shape.",
       {"[model] kind = \"exported\"", kModelOfPython}},
      {{"bleu", "rouge", "wer", "exact match"},
       "Not there: `tutti generate` and `tutti predict` write what a script may measure.",
       {"tutti generate", "tutti predict"}},
      {{"computer vision", "cv", "image classification"},
       "A folder with a folder for each class, and a network of torchvision's names.",
       {"[data.train] kind = \"image_folder\"", "[model] kind = \"resnet\"", "[model] kind = \"vit\"",
        "docs/your_data.md"}},
      {{"top 5", "top 5 accuracy", "accuracy at 5"},
       "top_k = 5 counts a class among the five highest scores.",
       {"metric MulticlassAccuracy"}},
      {{"class names", "label map", "id2label", "class to idx"},
       "Names of folders, and texts of a table's target, are classes; checkpoints keep them.",
       {"[data.train] kind = \"image_folder\"", "[data.train] kind = \"csv\"", kData}},
      {{"validation split", "val split", "train test split", "train val split", "split", "splits"},
       "Evaluations have data of their own; of one file of texts, the end may be for them.",
       {"[data.eval]", kData}},
  };
}

Guides of_training() {
  return {
      {{"bf16", "fp16", "float16", "bfloat16", "half", "half precision", "16 bit", "16 bits"},
       "Parameters stay in 32 bits, and kernels compute in 16 where that is safe.",
       {"[train] precision", "[precision]"}},
      {{"batch norm", "batch normalization", "sync batch norm", "sync bn", "synchronized batch norm"},
       "Each rank normalises by its part of the batch; running statistics move by all parts, in order.",
       {"[[algorithms]] kind = \"ghost_batchnorm\"", "docs/models.md"}},
      {{"initialization", "weight init", "xavier", "kaiming", "glorot", "he init"},
       "Weights begin as those of torch's and the clients' models, drawn from the seed.",
       {"[model] weights", "seed"}},
      {{"weight averaging", "polyak", "moving average", "model averaging", "model soup"},
       "Averages of weights, for evaluations and exports.",
       {"[[algorithms]] kind = \"ema\"", "[[algorithms]] kind = \"swa\""}},
      {{"weight tying", "tied weights", "tie weights", "tied embeddings"},
       "gpt and bert tie the output to the embedding; llama by its option.",
       {"[model] tie_word_embeddings"}},
      {{"histogram", "histograms", "gradient norms", "activation statistics", "wandb watch"},
       "Norms of gradients, weights and moments, and statistics of activations, are logged.",
       {"[[callbacks]] kind = \"optimizer_monitor\"", "[[callbacks]] kind = \"activation_monitor\""}},
      {{"embedding", "embeddings", "sentence embeddings", "sentence transformers", "sbert", "simcse",
        "contrastive", "contrastive learning", "contrastive loss", "info nce", "multiple negatives ranking",
        "grad cache", "in batch negatives", "bi encoder", "dual encoder"},
       "A BERT trained by pairs of texts, whose negatives are the whole batch, of all ranks and "
       "microbatches.",
       {"[model] kind = \"bert_contrastive\"", "docs/embeddings.md", "docs/models.md"}},
      {{"retrieval", "simclr", "clip loss", "image text"},
       "A loss over all samples of a step, in C++; within a microbatch, of Python.",
       {"metric RetrievalRecall", "docs/models.md", kModelOfPython}},
      {{"distillation", "distill", "knowledge distillation", "teacher", "student", "teacher model",
        "distilbert"},
       "Another run, a program of PyTorch or a folder of Hugging Face's is the teacher of a smaller model.",
       {"[[algorithms]] kind = \"distillation\"", "docs/algorithms.md"}},
      {{"param groups", "parameter groups", "layer wise lr decay", "discriminative lr", "llrd",
        "discriminative learning rates"},
       "Learning rates and weight decay by patterns of names; a factor from block to block.",
       {"[optimizer] groups", "[optimizer] layer_decay", "[optimizer] no_decay"}},
      {{"wsd", "trapezoidal"},
       "Warm-up, a constant part and a decay.",
       {"[scheduler] kind = \"warmup_stable_decay\""}},
      {{"warmup", "linear warmup"},
       "Schedules whose learning rate begins low, for t_warmup.",
       {"[scheduler] kind = \"cosine_annealing_with_warmup\"", "[scheduler] kind = \"linear_with_warmup\"",
        "[scheduler] kind = \"constant_with_warmup\""}},
      {{"shampoo", "sophia", "adan", "prodigy", "schedule free", "lars"},
       "Not there; a plugin brings an optimizer.",
       {"[optimizer] kind = \"muon\"", "[optimizer] kind = \"lamb\"", "docs/models.md"}},
      {{"gradient accumulation", "grad accumulation", "accumulate gradients", "microbatching"},
       "A step is made in several parts; \"auto\" finds how many fit into memory.",
       {"[train] grad_accum", "[train] device_train_microbatch_size"}},
      {{"gradient clipping", "grad clipping", "clip grad norm", "grad norm", "clip", "loss spike",
        "exploding gradients", "divergence"},
       "By norm, by value, or by the weights' size.",
       {"[[algorithms]] kind = \"gradient_clipping\""}},
      {{"gradient checkpointing", "activation checkpointing", "rematerialization", "recomputation"},
       "Blocks keep their input alone, and compute the rest again for backward.",
       {"[sharding] activation_checkpointing"}},
      {{"fp8", "float8", "transformer engine"}, "Not there yet.", {"[train] precision"}},
      {{"loss scaling", "grad scaler", "loss scale"},
       "amp_fp16 scales losses by itself.",
       {"[train] precision", "[precision] init_scale"}},
      {{"flip", "crop", "rotation", "transform"},
       "Transforms of images, with masks and boxes.",
       {"[[data.train.transforms]]", kData}},
      {{"padding", "pad", "padding side", "attention mask", "collate", "data collator"},
       "Samples of a dataset are of one size. Texts are cut or packed to it, and what fills them up does not "
       "count; images are resized or cropped, and a crop may pad them first.",
       {"[data.train] packing", "[[data.train.transforms]] kind = \"random_crop\"", kData}},
  };
}

// "torch.compile" as "torch compile".
std::string without_signs(const std::string& word) {
  std::string out = word;
  std::ranges::replace_if(
      out, [](char c) { return c == '.' || c == '/' || c == ':'; }, ' ');
  return out;
}

}  // namespace

const std::vector<Guide>& guides() {
  static const Guides all = [] {
    Guides joined;
    for (const auto& part : {of_models(), of_unets(), of_targets(), of_tasks(), of_data(), of_runs(),
                             of_hosts(), of_others(), of_training()})
      joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  }();
  return all;
}

const Guide* guide_for(std::span<const Guide> guides, const std::string& word) {
  const std::string asked = without_signs(word);
  const auto is_asked = [&](const std::string& one) { return same_name(one, asked); };
  const auto found = std::ranges::find_if(
      guides, [&](const Guide& guide) { return std::ranges::any_of(guide.words, is_asked); });
  return found == guides.end() ? nullptr : &*found;
}

std::string guide_text(const Guide& guide) {
  std::string out = guide.text + '\n';
  for (const auto& place : guide.see)
    out += "  " +
           (place.starts_with('[') || place.starts_with("metric ") || place.starts_with("loss ") ||
                    place == "seed"
                ? "in a recipe: "
                : std::string(place.starts_with("tutti ") ? "command: " : "to read: ")) +
           place + '\n';
  return out;
}

}  // namespace tutti

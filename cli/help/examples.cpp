#include <map>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace tutti {
namespace {

using Lines = std::vector<const char*>;

// Of commands that do the work. Text behind two spaces and # is a comment for the reader.
const std::map<std::string, Lines>& examples_of_work() {
  static const std::map<std::string, Lines> lines = {
      {"init",
       {"tutti init                                 # trains on random data at once", "tutti init digits.h5",
        "tutti init cifar-10-batches-bin --out cifar.toml", "tutti init cells.csv --target count,area"}},
      {"new",
       {"tutti new program mine                     # a torch::nn::Module on all ranks",
        "tutti new plugin noise                     # an algorithm and a callback for recipes"}},
      {"convert", {"tutti convert mpt-125m.yaml                # of MosaicML's llm-foundry"}},
      {"train",
       {"tutti train recipe.toml", "mpirun -np 4 tutti train recipe.toml       # four ranks",
        "tutti train recipe.toml --local-ranks 2    # two ranks in one process",
        "tutti train recipe.toml --set optimizer.lr=0.05 --set 'model.hidden=[256, 128]'",
        "tutti train recipe.toml --run-dir runs/one --resume"}},
      {"run",
       {"tutti run -np 4 train recipe.toml", "tutti run -np 16 --hosts node1:8,node2:8 train recipe.toml",
        "tutti run -np 2 -- ./train_digits          # any program"}},
      {"demo", {"tutti demo", "tutti demo --ranks 1 --run-dir runs/demo"}},
      {"resume",
       {"tutti resume                               # the newest run", "tutti resume runs/one",
        "mpirun -np 4 tutti resume runs/one --set train.max_duration=40ep"}},
      {"eval",
       {"tutti eval                                 # the newest run",
        "tutti eval runs/one --checkpoint best",
        "tutti eval recipe.toml --checkpoint runs/one/checkpoints/latest"}},
      {"predict",
       {"tutti predict runs/one --out predictions.csv",
        "tutti predict runs/photos --data new-photos --top-k 3 --out new.csv",
        "tutti predict --data - --out - < reviews.txt             # texts, a line each",
        "tutti predict runs/one --checkpoint best --out predictions.h5"}},
      {"check",
       {"tutti check recipe.toml", "tutti check recipe.toml --ranks 8",
        "tutti check recipe.toml --data             # reads every sample"}},
      {"inspect",
       {"tutti inspect runs/one", "tutti inspect runs/one/checkpoints/latest",
        "tutti inspect runs/one --checkpoint best --digest   # one hash of all weights"}},
      {"export",
       {"tutti export runs/one --to model.safetensors",
        "tutti export runs/one/checkpoints/latest --to-hf my-gpt   # for transformers",
        "tutti export runs/one --to-torch model.pt                          # for torch.load",
        "tutti export runs/lora --to-peft adapter                          # LoRA alone"}},
      {"import",
       {"tutti import ep3-ba400-rank0.pt --recipe recipe.toml   # Composer's, with optimizer and time",
        "tutti import lightning_logs/version_0/checkpoints/last.ckpt --recipe recipe.toml",
        "tutti import checkpoint-500 --recipe recipe.toml --out imported   # Hugging Face's Trainer"}},
      {"generate",
       {"tutti generate runs/text_gpt 'In the beginning'",
        "tutti generate runs/text_gpt 'And God said' --temperature 0 --length 80",
        "tutti generate runs/digits_diffusion --output digits.png   # images"}},
      {"tokenize",
       {"tutti tokenize 'texts/*.jsonl' --tokenizer tokenizer.json --to corpus",
        "tutti tokenize book.txt --tokenizer gpt2 --to book --no-eos-token"}},
  };
  return lines;
}

// Of commands that look at runs, and of the words of tutti.
const std::map<std::string, Lines>& examples_of_looks() {
  static const std::map<std::string, Lines> lines = {
      {"replay",
       {"tutti replay runs/one", "tutti replay runs/one --until step=100 --rank 1",
        "tutti replay runs/one --break-at step=12   # every rank's state before step 12"}},
      {"diff", {"tutti diff runs/one runs/two", "tutti diff runs/one runs/one --attempt-a 1 --attempt-b 2"}},
      {"timeline",
       {"tutti timeline runs/one                    # then open it at https://ui.perfetto.dev",
        "tutti timeline runs/one --out trace.json"}},
      {"simulate",
       {"tutti simulate recipe.toml --ranks 4 --seeds 1..100",
        "tutti simulate recipe.toml --seeds 17 --faults faults.toml --run-dir seed-17",
        "tutti simulate space.toml --seeds 1..1000 --faults faults.toml --shrink smaller"}},
      {"report", {"tutti report runs/one", "tutti report runs/one runs/two --out report.html"}},
      {"lr-find", {"tutti lr-find recipe.toml", "tutti lr-find recipe.toml --last 1 --steps 200"}},
      {"batch-find", {"tutti batch-find recipe.toml", "tutti batch-find recipe.toml --most 512 --ranks 2"}},
      {"sweep",
       {"tutti sweep recipe.toml --grid lr=0.1,0.03,0.01 --grid batch_size=32,64",
        "tutti sweep recipe.toml --random lr=log:1e-4..1e-1 --random t_warmup=0ba,100ba -n 20 --jobs 2",
        "tutti sweep recipe.toml --random lr=log:1e-4..1e-1 -n 16 --halving --run-dir runs/lr",
        "tutti sweep runs/lr                        # continues it"}},
      {"status", {"tutti status", "tutti status runs/one --json"}},
      {"logs",
       {"tutti logs                                 # of the newest run", "tutti logs runs/one -f",
        "tutti logs runs/one --rank 1 -n 20"}},
      {"ls",
       {"tutti ls", "tutti ls runs --sort accuracy --where 'lr>0.01' --where state=ended",
        "tutti ls runs ../more-runs --csv > runs.csv"}},
      {"compare", {"tutti compare runs/one runs/two", "tutti compare runs/lr-* --csv"}},
      {"stop", {"tutti stop runs/one"}},
      {"list", {"tutti list", "tutti list models"}},
      {"explain",
       {"tutti explain optimizer", "tutti explain adamw", "tutti explain train.max_duration",
        "tutti explain learning rate                # by topic",
        "tutti explain SpeedMonitor                 # a name of Composer's",
        "tutti explain --schema > tutti.schema.json # for editors"}},
      {"completion",
       {"tutti completion bash > ~/.local/share/bash-completion/completions/tutti",
        "tutti completion zsh > ~/.zfunc/_tutti",
        "tutti completion fish > ~/.config/fish/completions/tutti.fish",
        "source <(tutti completion bash)            # in this shell alone"}},
      {"man", {"tutti man | man -l -", "tutti man > tutti.1"}},
      {"help", {"tutti help train"}},
  };
  return lines;
}

Lines lines_of(const std::string& command) {
  for (const auto* examples : {&examples_of_work(), &examples_of_looks()})
    if (const auto lines = examples->find(command); lines != examples->end()) return lines->second;
  return {};
}

}  // namespace

void add_examples(CLI::App& app) {
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    const Lines lines = lines_of(command->get_name());
    if (lines.empty()) continue;
    std::string footer = "Examples:";
    for (const char* line : lines) footer += std::string("\n  ") + line;
    command->footer(footer);
  }
  app.footer(
      "`tutti help COMMAND` shows a command's options and examples; `tutti init` writes a first recipe, and\n"
      "`tutti explain NAME` says what a key or kind of a recipe means.");
}

}  // namespace tutti

// Subcommands that read or control a run's folder.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <utility>

#include "analysis/comparison/compared_runs.h"
#include "analysis/comparison/run_table.h"
#include "analysis/report/report_page.h"
#include "analysis/run_diff.h"
#include "analysis/run_folder.h"
#include "analysis/run_status.h"
#include "analysis/timeline.h"
#include "cli/commands.h"
#include "cli/library_command.h"
#include "cli/run_arguments.h"
#include "io/run_paths.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/terminal_output.h"

namespace tutti {
namespace {

// Turns "step=12" (as in metrics.jsonl) into "12"; returns an error message or "".
std::string step_number(std::string& text) {
  if (text.starts_with("step=")) text = text.substr(5);
  const bool number = !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == text.npos;
  return number && text != "0" ? "" : "expected step=N, N from 1";
}

CLI::Validator step() { return {step_number, "step=N"}; }

// Adds PATH and --checkpoint, which is returned.
std::shared_ptr<std::string> add_path_argument(CLI::App& command, std::string& path) {
  command.add_option(
      "PATH", path,
      "the run's folder, its recipe, or a checkpoint's folder (default: the newest run in runs/)");
  auto checkpoint = std::make_shared<std::string>();
  add_checkpoint_option(command, *checkpoint);
  return checkpoint;
}

struct DiffArguments {
  std::string run_a, run_b;
  int64_t attempt_a = 0, attempt_b = 0;
};

int diff(const DiffArguments& arguments) {
  const RunDiff result = diff_runs(run_folder(arguments.run_a), run_folder(arguments.run_b),
                                   arguments.attempt_a, arguments.attempt_b);
  print_text(result.text + '\n');
  return result.same ? 0 : 1;
}

struct TimelineArguments {
  std::string run_dir, out;
  int64_t attempt = 0;
};

int timeline(const TimelineArguments& arguments) {
  PosixDisk disk;
  const std::string run_dir = run_folder(arguments.run_dir);
  const std::string out = arguments.out.empty() ? run_dir + "/timeline.json" : arguments.out;
  print_text(write_timeline(disk, run_dir, out, arguments.attempt) + '\n');
  return 0;
}

int stop_run(const std::string& run) {
  PosixDisk disk;
  const std::string run_dir = run_folder(run);
  require_run_folder(run_dir);
  if (disk.lock_state(run_dir + '/' + kRunLock) == LockState::kFree)
    throw UserError(run_dir + ": no run is under way");
  disk.open(run_dir + '/' + kStopFile, true)->close();
  print_text("The run in " + run_dir + " finishes its step, writes a checkpoint and ends.\n");
  return 0;
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("replay", "Run a recorded run again in one process and compare it");
  auto options = std::make_shared<ReplayOptions>();
  add_run_argument(*command, options->run_dir);
  add_attempt_option(*command, options->start);
  command->add_option("--until", options->until, "the last step to replay")->transform(step());
  command
      ->add_option("--break-at", options->break_at,
                   "write the state of every rank before this step to HDF5 files, and end")
      ->transform(step());
  command
      ->add_option("--set", options->overrides,
                   "a command of the recipe, of which the run has the first word")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_option("--rank", options->rank, "compare this rank only")->type_name("R");
  command->add_flag("--on-cpu", options->on_cpu,
                    "on the CPU, also if this machine has the device of the run");
  command->callback([&action, options] {
    action = [=] {
      options->run_dir = run_folder(options->run_dir);
      return run_in_library(*options);
    };
  });
}

void add_inspect(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("inspect", "Show the contents of a checkpoint or a run folder");
  auto options = std::make_shared<InspectOptions>();
  const auto checkpoint = add_path_argument(*command, options->path);
  command->add_flag("--digest", options->digest,
                    "print only one hash of all weights, the same for any number of ranks");
  command->callback([&action, options, checkpoint] {
    action = [=] {
      options->path = checkpoint_folder(options->path, *checkpoint);
      return run_in_library(*options);
    };
  });
}

void add_export(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("export", "Write a checkpoint's weights as other programs read them");
  auto options = std::make_shared<ExportOptions>();
  const auto checkpoint = add_path_argument(*command, options->path);
  auto* file = command->add_option("--to", options->to, "a .safetensors file to write")->type_name("FILE");
  auto* folder = command
                     ->add_option("--to-hf", options->to_hf,
                                  "a folder to write for Hugging Face's transformers: config.json and "
                                  "model.safetensors")
                     ->type_name("DIR")
                     ->excludes(file);
  auto* torch =
      command
          ->add_option("--to-torch", options->to_torch, "a .pt file to write, for torch.load: a state dict")
          ->type_name("FILE")
          ->excludes(file)
          ->excludes(folder);
  command
      ->add_option("--layout", options->layout,
                   "of --to-torch: composer for a file of Composer's load_path (default: plain)")
      ->type_name("VALUE")
      ->check(CLI::IsMember({"plain", "composer"}))
      ->needs(torch);
  command
      ->add_option("--to-peft", options->to_peft,
                   "a folder to write for PEFT: the adapters of LoRA alone; the others merge them")
      ->type_name("DIR")
      ->excludes(file)
      ->excludes(folder)
      ->excludes(torch);
  command->add_flag("--trained", options->trained,
                    "the weights that are trained, not the average that EMA keeps of them");
  command->callback([&action, options, checkpoint] {
    action = [=] {
      options->path = checkpoint_folder(options->path, *checkpoint);
      return run_in_library(*options);
    };
  });
}

namespace {

// Of images; returns --output, which the others need.
CLI::Option* add_image_options(CLI::App& command, SampleImagesOptions& images) {
  auto* output =
      command.add_option("--output", images.output, "writes images: a grid as .png, or numbers as .h5")
          ->type_name("FILE");
  command.add_option("--samples", images.samples, "images (default: 64)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(output);
  command.add_option("--steps", images.steps, "of the sampler (default: 50)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000))
      ->needs(output);
  command.add_option("--sampler", images.sampler, "ddim or ddpm (default: ddim)")
      ->type_name("VALUE")
      ->check(CLI::IsMember({"ddim", "ddpm"}))
      ->needs(output);
  return output;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "generate", "Continue a text with a run's language model, or draw images with its diffusion model");
  auto options = std::make_shared<ContinueOptions>();
  auto images = std::make_shared<SampleImagesOptions>();
  command->add_option(
      "PATH", options->path,
      "the run's folder, its recipe, or a checkpoint's folder (default: the newest run in runs/)");
  const auto checkpoint = std::make_shared<std::string>();
  add_checkpoint_option(*command, *checkpoint);
  auto* prompt = command->add_option(
      "PROMPT", options->prompt, "the text; tokens, as in \"17 4 2\", if those of the model are no bytes");
  std::vector<CLI::Option*> text_options = {prompt};
  text_options.push_back(command->add_option("--length", options->length, "tokens to add (default: 200)")
                             ->type_name("N")
                             ->check(CLI::Range(1, 1'000'000)));
  text_options.push_back(command
                             ->add_option("--temperature", options->temperature,
                                          "of the softmax; 0: always the likeliest token (default: 0.8)")
                             ->type_name("R")
                             ->check(CLI::Range(0.0, 1e6)));
  text_options.push_back(
      command->add_option("--top-k", options->top_k, "only the N likeliest tokens (default: all)")
          ->type_name("N")
          ->check(CLI::Range(1, 1'000'000'000)));
  text_options.push_back(command->add_flag(
      "--logprobs", options->logprobs,
      "instead of the text a line of JSON for each new token: token, text and logprob, in nats"));
  command->add_option("--seed", options->seed, "the same seed gives the same text or images (default: 0)")
      ->type_name("N");
  auto* output = add_image_options(*command, *images);
  for (CLI::Option* option : text_options) output->excludes(option);
  command->callback([&action, options, images, checkpoint, prompt, output] {
    const bool has_prompt = prompt->count() > 0 || output->count() > 0;
    std::error_code error;
    const bool is_path =
        options->path.find('/') != std::string::npos || std::filesystem::exists(options->path, error);
    if (!has_prompt && (options->path.empty() || is_path))
      throw CLI::RequiredError("PROMPT, or --output FILE for images,");
    if (!has_prompt) options->prompt = std::exchange(options->path, "");  // of the newest run
    images->seed = options->seed;
    action = [=] {
      images->path = options->path = checkpoint_folder(options->path, *checkpoint);
      return output->count() > 0 ? run_in_library(*images) : run_in_library(*options);
    };
  });
}

void add_tokenize(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("tokenize", "Write the tokens of texts to files, once for many runs");
  auto options = std::make_shared<TokenizeOptions>();
  command
      ->add_option("TEXTS", options->texts,
                   "JSON lines (.jsonl), or a document a file; several: \"texts/*.jsonl\"")
      ->required();
  command
      ->add_option("--tokenizer", options->tokenizer,
                   "Hugging Face's tokenizer.json, or the folder that has it")
      ->type_name("FILE")
      ->required();
  command->add_option("--to", options->to, "writes NAME.bin and NAME.idx, which kind = \"tokens\" reads")
      ->type_name("NAME")
      ->required();
  for (const char* key : {"text_field", "bos_token", "eos_token"})
    command
        ->add_option_function<std::string>(
            "--" + std::string(key).replace(std::string(key).find('_'), 1, "-"),
            [options, key](const std::string& value) { options->keys.emplace_back(key, value); },
            std::string("as the key ") + key + " of kind = \"text\"")
        ->type_name("VALUE");
  command->add_flag("--add-bos-token", options->add_bos_token, "begin each document with a token");
  command->add_flag("!--no-eos-token", options->add_eos_token, "do not end each document with a token");
  command->add_flag("--skip-bad", options->skip_bad, "leave out lines that are no such JSON");
  command->callback([&action, options] { action = [=] { return run_in_library(*options); }; });
}

void add_diff(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "diff",
      "Name the first step, rank and tensor where two recorded runs differ (tutti compare: "
      "their metrics and keys)");
  auto arguments = std::make_shared<DiffArguments>();
  command->add_option("RUN_A", arguments->run_a, "a run's folder, or its recipe")->required();
  command->add_option("RUN_B", arguments->run_b, "another run, or the same")->required();
  add_attempt_option(*command, arguments->attempt_a, "-a");
  add_attempt_option(*command, arguments->attempt_b, "-b");
  command->callback([&action, arguments] { action = [=] { return diff(*arguments); }; });
}

void add_timeline(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("timeline", "Write a recorded run, finished or not, as a trace for Perfetto");
  auto arguments = std::make_shared<TimelineArguments>();
  add_run_argument(*command, arguments->run_dir);
  command->add_option("--out", arguments->out, "the trace file (default: RUN/timeline.json)")
      ->type_name("FILE");
  add_attempt_option(*command, arguments->attempt);
  command->callback([&action, arguments] { action = [=] { return timeline(*arguments); }; });
}

void add_stop(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("stop", "Ask a run to write a checkpoint and end");
  auto run_dir = std::make_shared<std::string>();
  command->add_option("RUN", *run_dir, "the run's folder, or its recipe")->required();
  command->callback([&action, run_dir] { action = [=] { return stop_run(*run_dir); }; });
}

namespace {

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
};

int report(ReportArguments arguments) {
  PosixDisk disk;
  if (arguments.runs.empty()) arguments.runs.emplace_back();
  std::vector<std::string> runs;
  for (std::string& run : arguments.runs) {
    run = folder_of_all_stages(run);
    std::vector<std::string> stages = stage_runs(run);
    if (stages.empty()) stages = {run};
    std::ranges::move(stages, std::back_inserter(runs));
  }
  const std::string out = arguments.out.empty() ? arguments.runs[0] + "/report.html" : arguments.out;
  print_text(write_report(disk, runs, out) + '\n');
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "report", "Write a page about runs, finished or not: curves, time by activity, faults");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("RUN", arguments->runs,
                      "the runs' folders or recipes, to be shown side by side (default: the newest run)");
  command->add_option("--out", arguments->out, "the HTML file (default: report.html in the first folder)")
      ->type_name("FILE");
  command->callback([&action, arguments] { action = [=] { return report(*arguments); }; });
}

namespace {

void print_json(const RunStatus& status) { std::printf("%s\n", status.json().c_str()); }

int show_status(const std::string& run, bool json) {
  const RunStatus status = status_of(run_folder(run));
  if (json)
    print_json(status);
  else
    print_text(status_text(status, std::time(nullptr)));
  return 0;
}

struct ListedRuns {
  std::vector<std::string> folders;
  RunQuery query;
  bool csv = false, json = false;
};

// Their runs are in folders of their own.
std::string sweeps_below(const std::vector<std::string>& folders) {
  std::string lines;
  for (const std::string& folder : folders)
    for (const std::string& name : PosixDisk().list(folder))
      if (const std::string path = folder + '/' + name; is_sweep_folder(path))
        lines += "a sweep: tutti ls " + on_one_line(path) + '\n';
  return lines;
}

int show_runs(const ListedRuns& listed) {
  std::vector<RunStatus> runs;
  for (const std::string& folder : listed.folders)
    for (RunStatus& run : runs_below(folder)) runs.push_back(std::move(run));
  const RunTable table(std::move(runs), listed.query);
  if (listed.json)
    std::ranges::for_each(table.runs(), print_json);
  else if (listed.csv)
    std::fputs(table.csv().c_str(), stdout);
  else
    print_text(table.text(std::time(nullptr), terminal_columns(STDOUT_FILENO)) +
               sweeps_below(listed.folders));
  return 0;
}

int compare_runs(const ListedRuns& listed) {
  if (!listed.csv) {
    print_text(comparison_text(listed.folders, terminal_columns(STDOUT_FILENO)));
    return 0;
  }
  std::vector<RunStatus> runs;
  for (const std::string& folder : listed.folders) runs.push_back(status_of(folder));
  std::fputs(RunTable(std::move(runs), {}).csv().c_str(), stdout);
  return 0;
}

}  // namespace

void add_status(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("status", "Show how far a run is, its metrics and its checkpoints");
  auto run = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  add_run_argument(*command, *run);
  command->add_flag("--json", *json, "as a JSON object");
  command->callback([&action, run, json] { action = [=] { return show_status(*run, *json); }; });
}

void add_ls(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "ls", "List runs: state, progress, best metric, and the keys in which their recipes differ");
  auto listed = std::make_shared<ListedRuns>();
  listed->folders = {"runs"};
  command->add_option("FOLDER", listed->folders, "runs, and folders of runs (default: runs)");
  command
      ->add_option("--sort", listed->query.sort,
                   "a metric, best first, or a key of the recipes; the end of its name will do")
      ->type_name("METRIC");
  command
      ->add_option(
          "--where", listed->query.where,
          "only runs with such a key or metric: 'lr>0.1' (= != < <= > >=); may be given several times")
      ->type_name("CONDITION")
      ->allow_extra_args(false);
  auto* csv = command->add_flag("--csv", listed->csv, "as CSV, with all metrics");
  command->add_flag("--json", listed->json, "a JSON object a line, as of tutti status --json")->excludes(csv);
  command->callback([&action, listed] { action = [=] { return show_runs(*listed); }; });
}

void add_compare(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "compare",
      "Show runs side by side: metrics, times, differing keys (tutti diff: where their bits differ)");
  auto listed = std::make_shared<ListedRuns>();
  command->add_option("RUN", listed->folders, "the runs' folders")->required();
  command->add_flag("--csv", listed->csv, "as CSV, a line a run, as of tutti ls --csv");
  command->callback([&action, listed] { action = [=] { return compare_runs(*listed); }; });
}

}  // namespace tutti

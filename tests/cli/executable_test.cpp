// The executable itself, beside a libtutti.so that prints its request.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/disk.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  int code = -1;
  std::string out, err;
};

class Executable : public testing::Test {
 protected:
  Executable()
      : folder_(fs::temp_directory_path() / ("tutti_executable_test_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    std::ofstream(recipe())
        << "[model]\nkind = \"mlp\"\n[data.train]\nkind = \"hdf5\"\npath = \"x.h5\"\nbatch_size = 96\n"
           "[optimizer]\nkind = \"sgd\"\n[train]\nmax_duration = \"20ep\"\n";
  }
  ~Executable() override { fs::remove_all(folder_); }

  std::string recipe() const { return (folder_ / "good.toml").string(); }

  Outcome tutti(const std::string& arguments, const std::string& environment = "") const {
    const std::string out = (folder_ / "out").string();
    const std::string err = (folder_ / "err").string();
    const int status = std::system(
        (environment + ' ' + TUTTI_BUILD_DIR "/tests/thin/tutti " + arguments + " > " + out + " 2> " + err)
            .c_str());
    return {WEXITSTATUS(status), text_of(out), text_of(err)};
  }

  static std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  fs::path folder_;
};

TEST_F(Executable, TrainHandsEverythingToTheLibrary) {
  const Outcome done = tutti(
      "train --set seed=3 --set 'run_name=a b' " + recipe() +
      " --run-dir d --resume auto --local-ranks 2 --set=train.max_duration=1ep --set 'model.hidden=[8, 4]'");
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out,
            "train path=" + recipe() +
                " run_dir=d resume=auto local_ranks=2\n"
                "set seed=3\nset run_name=a b\nset train.max_duration=1ep\nset model.hidden=[8, 4]\n");
}

TEST_F(Executable, OtherCommandsHandOverTheirOwn) {
  EXPECT_EQ(tutti("eval " + recipe() + " --checkpoint ./c").out,
            "eval path=" + recipe() + " checkpoint=./c\n");
  EXPECT_EQ(tutti("predict " + recipe() + " --out o").out,
            "predict path=" + recipe() + " checkpoint= evaluator=eval data= out=o top_k=0\n");
  EXPECT_EQ(tutti("check --data --ranks 4 " + recipe()).out,
            "check path=" + recipe() + " ranks=4 steps=2 data=1\n");
  EXPECT_EQ(tutti("check " + recipe(), "OMPI_COMM_WORLD_SIZE=3").out,
            "check path=" + recipe() + " ranks=3 steps=2 data=0\n");
  EXPECT_EQ(tutti("inspect somewhere --digest").out, "inspect path=somewhere digest=1\n");
  EXPECT_EQ(tutti("generate somewhere 'In the beginning' --length 7 --seed 3").out,
            "generate path=somewhere prompt=In the beginning length=7 top_k=0 seed=3\n");
  EXPECT_EQ(tutti("generate somewhere --output a.png --samples 4 --sampler ddpm --seed 3").out,
            "generate path=somewhere output=a.png samples=4 steps=50 sampler=ddpm seed=3\n");
  EXPECT_EQ(tutti("tokenize a.jsonl --tokenizer t.json --to b --text-field body --no-eos-token").out,
            "tokenize texts=a.jsonl tokenizer=t.json to=b text_field=body add_bos_token=0 add_eos_token=0 "
            "skip_bad=0\n");
  EXPECT_EQ(tutti("export somewhere --to a.safetensors --trained").out,
            "export path=somewhere to=a.safetensors to_hf= to_peft= trained=1\n");
  EXPECT_EQ(tutti("export somewhere --to-hf folder").out,
            "export path=somewhere to= to_hf=folder to_peft= trained=0\n");
  EXPECT_EQ(tutti("import a.pt --out folder --recipe " + recipe()).out,
            "import path=a.pt recipe=" + recipe() + " out=folder\n");
  EXPECT_EQ(tutti("replay somewhere --attempt 2 --until step=3 --on-cpu").out,
            "replay path=somewhere start=2 until=3 break_at=0 rank=-1 on_cpu=1\n");
  EXPECT_EQ(tutti("simulate " + recipe()).out,
            "simulate path=" + recipe() + " ranks=2 seeds=1..100 once=0 share_of=0\n");
  EXPECT_EQ(tutti("simulate --once --seeds 17 " + recipe()).out,
            "simulate path=" + recipe() + " ranks=2 seeds=17..17 once=1 share_of=0\n");
}

TEST_F(Executable, RecordedRunsAreReadWithoutTheLibrary) {
  for (const std::string command : {"timeline nowhere", "report nowhere", "diff nowhere elsewhere"}) {
    const Outcome done = tutti(command);
    EXPECT_EQ(done.code, 2);
    EXPECT_EQ(done.err, "error: nowhere: there is no such folder\n");
  }
}

TEST_F(Executable, ARunThatIsMissingHasTheNearestName) {
  fs::create_directories(folder_ / "runs" / "houses");
  const std::string runs = (folder_ / "runs").string();
  EXPECT_EQ(tutti("eval " + runs + "/hous").err,
            "error: " + runs + "/hous: there is no such run or recipe; did you mean " + runs + "/houses?\n");
}

TEST_F(Executable, ABadRecipeIsRefusedBeforeTheLibraryIsOpened) {
  const Outcome done = tutti("train " + recipe() + " --set optimizer.lr=fast");
  EXPECT_EQ(done.code, 2);
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(done.err,
            "error: --set: optimizer.lr = \"fast\": expected a number >= 0\n"
            "      | --set optimizer.lr=fast\n"
            "      |                    ^^^^\n");
}

TEST_F(Executable, AllMistakesOfARecipeAreSaidAtOnce) {
  const Outcome done = tutti("train " + recipe() + " --set optimizer.lr=fast --set train.bogus=1");
  EXPECT_EQ(done.code, 2);
  EXPECT_NE(done.err.find("error: --set: optimizer.lr"), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("\n\nerror: --set: train.bogus"), std::string::npos) << done.err;
  EXPECT_TRUE(done.err.ends_with("\n\n2 errors\n")) << done.err;
}

TEST_F(Executable, TheLibrarysErrorsArriveAsWhatTheyAre) {
  const Outcome user = tutti("train " + recipe() + " --resume 'user error'");
  EXPECT_EQ(user.code, 2);
  EXPECT_EQ(user.err, "error: there.toml:3: this is wrong\n");
  const Outcome failure = tutti("train " + recipe() + " --resume failure", "OMPI_COMM_WORLD_RANK=7");
  EXPECT_EQ(failure.code, 1);
  EXPECT_EQ(failure.err, "error: rank 7: the disk is on fire\n");
  EXPECT_EQ(tutti("train " + recipe() + " --resume three").code, 3);
}

TEST_F(Executable, RanksLaunchedTogetherShareTheirErrors) {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const Outcome wrong = tutti("trian x", std::string(variable) + "=1");
    EXPECT_EQ(wrong.out.find("refuse why=there is no command trian; did you mean train?"), 0u);
    EXPECT_EQ(wrong.err, "");
    EXPECT_EQ(tutti("train " + recipe() + " --set seed=x", std::string(variable) + "=1").out.find("train"),
              0u);
  }
}

TEST_F(Executable, RankZeroDoesTheWorkOfASingleProcess) {
  EXPECT_NE(tutti("inspect x", "PMIX_RANK=0").out, "");
  const Outcome other = tutti("inspect x", "PMIX_RANK=1");
  EXPECT_EQ(other.out + other.err, "");
  EXPECT_EQ(other.code, 0);
}

TEST_F(Executable, WrongCommandLinesAreUsersErrors) {
  EXPECT_EQ(tutti("trian x").err, "error: there is no command trian; did you mean train?\n");
  EXPECT_EQ(tutti("help trian").err, "error: there is no command trian; did you mean train?\n");
  EXPECT_EQ(tutti("train").err, "error: RECIPE is required (see --help)\n");
  EXPECT_NE(tutti("train x --resum auto").err.find("; did you mean --resume? (see --help)\n"),
            std::string::npos);
  EXPECT_NE(tutti("train x --max-duration 3ep").err.find("; did you mean --set train.max_duration=...? (see"),
            std::string::npos);
  EXPECT_NE(tutti("train x --devices 4").err.find("; Lightning's devices: not carried over: `mpirun -np 4 "),
            std::string::npos);
  EXPECT_NE(tutti("train x --rundir=a").err.find("; did you mean --run-dir? (see --help)\n"),
            std::string::npos);
  EXPECT_EQ(tutti("train x --local-ranks 0").code, 2);
  EXPECT_EQ(tutti("explain").code, 2);
  for (const char* arguments :
       {"train x --run-dir \"\"", "train x --run-dir=", "train x --run-dir a --run-dir \"\""})
    EXPECT_EQ(tutti(arguments).code, 2) << arguments;
  EXPECT_EQ(tutti("train x --resume \"\"").err,
            "error: --resume: expected a value, not an empty text (see --help)\n");
  EXPECT_EQ(tutti("stop \"\"").err, "error: RUN: expected a value, not an empty text (see --help)\n");
  const Outcome nothing = tutti("");
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.err.find("Usage: tutti"), std::string::npos);
}

// Beside an Open MPI whose mpirun prints its arguments and some of its variables.
class OnRanks : public Executable {
 protected:
  OnRanks() {
    for (const char* folder : {"mpi/bin", "mpi/lib"}) fs::create_directories(folder_ / folder);
    std::ofstream(folder_ / "mpi/lib/libmpi.so.40");
    const fs::path mpirun = folder_ / "mpi/bin/mpirun";
    std::ofstream(mpirun)
        << "#!/bin/sh\necho \"$@\"\necho $OMPI_ALLOW_RUN_AS_ROOT $OMPI_MCA_btl $LD_LIBRARY_PATH\n";
    fs::permissions(mpirun, fs::perms::owner_all);
  }
  Outcome run(const std::string& arguments) const {
    return tutti("run " + arguments, "LD_LIBRARY_PATH=x TUTTI_OPENMPI=" + (folder_ / "mpi").string());
  }
  std::string library_path() const { return (folder_ / "mpi/lib").string() + ":x"; }

  const std::string options_ = "--oversubscribe --bind-to none ";
  const std::string program_ = fs::canonical(TUTTI_BUILD_DIR "/tests/thin/tutti").string();
};

TEST_F(OnRanks, ACommandIsStartedByMpirun) {
  const Outcome done = run("-np 2 --mca a b train r.toml --set seed=3 --hosts");
  EXPECT_EQ(done.out, options_ + "-np 2 --mca a b " + program_ +
                          " train r.toml --set seed=3 --hosts\n1 self,vader " + library_path() + '\n')
      << done.err;
  EXPECT_EQ(run("-n 2 -- ./own train --hosts a").out,
            options_ + "-n 2 ./own train --hosts a\n1 self,vader " + library_path() + '\n');
  EXPECT_EQ(run("--hosts a:2,b train r.toml").out,
            options_ + "--host a:2,b " + program_ + " train r.toml\n1 " + library_path() + '\n');
  EXPECT_EQ(run("--np=2 --hosts=report,b --mca list demo train r.toml").out,
            options_ + "--np 2 --host report,b --mca list demo " + program_ + " train r.toml\n1 " +
                library_path() + '\n');
  EXPECT_EQ(
      run("--mca=btl demo -x A=b train r.toml").out.find(options_ + "--mca btl demo -x A=b " + program_), 0u);
  EXPECT_EQ(run("--host report train r.toml").out,
            options_ + "--host report " + program_ + " train r.toml\n1 " + library_path() + '\n');
}

TEST_F(OnRanks, WithoutACommandOrMpirunNothingStarts) {
  EXPECT_EQ(run("-np 2 trian r.toml").err, "error: run: there is no command trian; did you mean train?\n");
  for (const char* arguments : {"", "-np 2", "-np 2 --", "-np 2 --hosts train", "-np 2 --help"})
    EXPECT_EQ(run(arguments).err.find("error: run: expected a command after mpirun's options"), 0u)
        << arguments;
  EXPECT_EQ(run("-np 2").code, 2);
  EXPECT_EQ(tutti("run -np 2 train x", "TUTTI_OPENMPI=/none").err,
            "error: TUTTI_OPENMPI=/none: there is no bin/mpirun\n");
  EXPECT_EQ(tutti("run -np 2 train x", "OMPI_COMM_WORLD_RANK=0").code, 2);
}

// Runs in the folder's runs/, the current folder of the commands.
class NamedRuns : public Executable {
 protected:
  NamedRuns() {
    for (const char* run : {"old", "new"}) {
      fs::create_directories(folder_ / "runs" / run / "log");
      fs::copy_file(recipe(), folder_ / "runs" / run / "recipe.toml");
      std::ofstream(folder_ / "runs" / run / "metrics.jsonl") << "";
    }
    for (const char* file : {"recipe.toml", "metrics.jsonl"})
      fs::last_write_time(folder_ / "runs/old" / file,
                          fs::file_time_type::clock::now() - std::chrono::hours(1));
    for (const char* name : {"ep3-ba90", "ep30-ba900"}) add_checkpoint("runs/new/checkpoints", name);
  }
  void add_checkpoint(const std::string& folder, const std::string& name) const {
    fs::create_directories(folder_ / folder / name);
    std::ofstream(folder_ / folder / name / "manifest.json")
        << R"({"manifest": {"files": [], "state": {"step": 1, "epoch": 1}}})";
  }
  Outcome here(const std::string& arguments, const std::string& environment = "") const {
    return tutti(arguments, "cd " + folder_.string() + " && " + environment);
  }
};

TEST_F(NamedRuns, TakeThePlaceOfRecipes) {
  const std::string newest = "eval path=runs/new/recipe.toml checkpoint=";
  EXPECT_EQ(here("eval runs/new").out, newest + "runs/new\n");
  EXPECT_EQ(here("eval runs/new/ --checkpoint latest").out, newest + "runs/new\n");
  EXPECT_EQ(here("eval runs/new --checkpoint ep3").out, newest + "runs/new/checkpoints/ep3-ba90\n");
  EXPECT_EQ(here("eval runs/new/checkpoints/ep3-ba90").out, newest + "runs/new/checkpoints/ep3-ba90\n");
  EXPECT_EQ(here("eval runs/new/recipe.toml").out, newest + "runs/new\n");
  EXPECT_EQ(here("eval runs/new --checkpoint runs/old").out, newest + "runs/old\n");
  EXPECT_EQ(here("predict runs/new --out o --data d --top-k 3").out,
            "predict path=runs/new/recipe.toml checkpoint=runs/new evaluator=eval data=d out=o top_k=3\n");
  EXPECT_EQ(here("check runs/new").out, "check path=runs/new/recipe.toml ranks=1 steps=2 data=0\n");
  EXPECT_EQ(here("inspect runs/new --checkpoint ep30").out,
            "inspect path=runs/new/checkpoints/ep30-ba900 digest=0\n");
  EXPECT_EQ(
      here("generate runs/new 'In the' --checkpoint ep3").out.find("generate path=runs/new/checkpoints/ep3"),
      0u);
  EXPECT_EQ(here("eval good.toml --set run_name=new --checkpoint ep3").out,
            "eval path=good.toml checkpoint=runs/new/checkpoints/ep3-ba90\n");
}

TEST_F(NamedRuns, NeedNoNameIfTheyAreTheNewest) {
  EXPECT_EQ(here("generate 'In the'").out.find("generate path=runs/new prompt=In the"), 0u);
  EXPECT_NE(here("generate runs/nwe").err.find("PROMPT"), std::string::npos);
  const Outcome eval = here("eval");
  EXPECT_EQ(eval.out, "eval path=runs/new/recipe.toml checkpoint=runs/new\n");
  EXPECT_EQ(eval.err, "run: runs/new, the newest in runs/\n");
  EXPECT_EQ(here("export --to a.safetensors").out.find("export path=runs/new to=a.safetensors"), 0u);
  EXPECT_EQ(here("replay").out.find("replay path=runs/new "), 0u);
  EXPECT_EQ(here("status").out.find("runs/new: killed"), 0u);
  EXPECT_EQ(here("status good.toml --json").code, 2) << "runs/run is not there";
  EXPECT_EQ(tutti("eval", "cd /dev/shm &&").err, "error: there is no run in runs/; name a run's folder\n");
}

TEST_F(NamedRuns, AreRefusedWhereTheyAreNot) {
  EXPECT_EQ(here("eval runs/old").err, "error: runs/old: there is no checkpoint in runs/old/checkpoints\n");
  EXPECT_EQ(here("eval runs").err, "error: runs: not a run folder: it has no recipe.toml\n");
  EXPECT_EQ(here("eval runs/new --checkpoint ep4").err,
            "error: command line: --checkpoint = \"ep4\": expected the name of a checkpoint of runs/new, or "
            "the beginning of one name; there are ep3-ba90, "
            "ep30-ba900\n");
  EXPECT_EQ(
      here("eval runs/new --checkpoint best").err,
      "error: command line: --checkpoint = \"best\": runs/new keeps no best one ([checkpoint] best); there "
      "are ep3-ba90, ep30-ba900\n");
  EXPECT_EQ(
      here("train runs/new").err.find("error: runs/new: is a run; `tutti resume runs/new` continues it"), 0u);
}

TEST_F(NamedRuns, AreResumedWithTheirRecipe) {
  EXPECT_EQ(here("resume runs/new --set train.max_duration=9ep").out,
            "train path=runs/new/recipe.toml run_dir=runs/new resume=auto local_ranks=0\n"
            "set train.max_duration=9ep\n");
  EXPECT_EQ(here("resume", "OMPI_COMM_WORLD_RANK=1").out,
            "train path=runs/new/recipe.toml run_dir=runs/new resume=auto local_ranks=0\n");
  EXPECT_EQ(here("resume runs/none", "OMPI_COMM_WORLD_RANK=1").out,
            "refuse why=runs/none: there is no such folder\n");
  for (const char* arguments : {"train good.toml --resume", "train --resume good.toml",
                                "train --resume good.toml --set seed=3", "train --resume auto good.toml"})
    EXPECT_EQ(here(arguments).out.find("train path=good.toml run_dir= resume=auto"), 0u) << arguments;
  EXPECT_EQ(here("train --resume x good.toml").out.find("train path=good.toml run_dir= resume=x"), 0u);
  EXPECT_EQ(here("train --resume").err, "error: RECIPE is required (see --help)\n");
}

TEST_F(NamedRuns, ShowTheirLogs) {
  std::ofstream(folder_ / "runs/new/log/rank-0.log") << "training starts\n\x1b[2J\n";
  std::ofstream(folder_ / "runs/new/metrics.jsonl")
      << R"({"step": 1, "epoch": 1, "loss": 0.5, "lr": 0.1, "step_ms": 3, "samples_per_s": 7})"
      << "\n";
  const std::string all =
      "training starts\n\\x1b[2J\nstep 1  epoch 1  loss 0.5  lr 0.1  samples_per_s 7\nruns/new: killed, it "
      "left no "
      "result; log/ has the last that each rank did\n";
  EXPECT_EQ(here("logs runs/new").out, all);
  EXPECT_EQ(here("logs -f").out, all) << "a run that is over is not waited for";
  EXPECT_EQ(here("logs -n 1").out, all.substr(all.find("step 1")));
  EXPECT_EQ(here("tail").err, "error: there is no command tail; did you mean logs?\n");
}

TEST_F(NamedRuns, AreFollowedToTheirEnd) {
  auto run_itself = PosixDisk().lock((folder_ / "runs/new/.lock").string(), "a test");
  std::ofstream log(folder_ / "runs/new/log/rank-0.log");
  log << "first\n" << std::flush;
  Outcome followed;
  std::thread follower([&] { followed = here("logs runs/new --follow"); });
  const auto is_shown = [&](const char* line) {
    return text_of((folder_ / "out").string()).find(line) != std::string::npos;
  };
  for (int i = 0; i < 1000 && !is_shown("first"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  log << "second\n" << std::flush;
  for (int i = 0; i < 1000 && !is_shown("second"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  log << "third\n" << std::flush;
  run_itself.reset();
  follower.join();
  EXPECT_EQ(followed.out.find("first\nsecond\nthird\nruns/new: killed"), 0u) << followed.out;
}

TEST_F(Executable, HelpIsACommandToo) {
  EXPECT_EQ(tutti("help").out, tutti("--help").out);
  for (const char* command : {"train", "stop", "help"}) {
    const std::string text = tutti(std::string("help ") + command).out;
    EXPECT_EQ(text, tutti(std::string(command) + " --help").out);
    EXPECT_NE(text.find(std::string("Usage: tutti ") + command), std::string::npos) << text;
  }
  EXPECT_EQ(tutti("-V").out, tutti("--version").out);
}

TEST_F(Executable, StopAsksTheRunByAFile) {
  const std::string run = (folder_ / "run").string();
  EXPECT_EQ(tutti("stop " + run).err, "error: " + run + ": there is no such folder\n");
  fs::create_directories(run);
  EXPECT_EQ(tutti("stop " + run).err, "error: " + run + ": not a run folder: it has no recipe.toml\n");
  std::ofstream(run + "/recipe.toml") << "";
  EXPECT_NE(tutti("stop " + run).err.find("and nothing else that a run leaves"), std::string::npos);
  std::ofstream(run + "/metrics.jsonl") << "";
  EXPECT_EQ(tutti("stop " + run).err, "error: " + run + ": no run is under way\n");
  const auto run_itself = PosixDisk().lock(run + "/.lock", "a test");
  EXPECT_EQ(tutti("stop " + run).code, 0);
  EXPECT_TRUE(fs::exists(run + "/stop"));
}

TEST_F(Executable, WithoutItsLibraryItSaysSo) {
  fs::copy_file(TUTTI_BUILD_DIR "/tests/thin/tutti", folder_ / "tutti");
  const std::string err = (folder_ / "err").string();
  EXPECT_NE(std::system(((folder_ / "tutti").string() + " inspect x 2> " + err).c_str()), 0);
  EXPECT_EQ(text_of(err).find("error: cannot open libtutti.so: "), 0u);
}

TEST_F(Executable, PrintsItsHelpAndCatalogsWithinATenthOfASecond) {
  for (const char* arguments : {"--help", "--version", "list", "explain adamw", "help train"}) {
    double best_s = 1e9;
    for (int i = 0; i < 5; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      const Outcome done = tutti(arguments);
      best_s =
          std::min(best_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      EXPECT_EQ(done.code, 0);
      EXPECT_NE(done.out, "");
    }
    EXPECT_LT(best_s, 0.1) << arguments;
  }
}

}  // namespace
}  // namespace tutti

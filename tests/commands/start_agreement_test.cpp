#include "commands/start_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "collectives/local/group.h"
#include "tests/actors/sleeping_world.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::Each;
using testing::Eq;
using testing::HasSubstr;

// The error of each rank, or "", if rank r has the r-th recipe.
std::vector<std::string> errors_of(const std::vector<std::string>& recipes, const std::string& run_dir) {
  std::vector<std::string> errors(recipes.size());
  const auto fabric = LocalFabric::make(static_cast<int>(recipes.size()));
  std::vector<std::thread> ranks;
  for (std::size_t r = 0; r < recipes.size(); ++r)
    ranks.emplace_back([&, r] {
      const auto group = fabric->group(static_cast<int>(r));
      try {
        agree_on_job(make_request([&] { return recipe_of(recipes[r]); }, {.run_dir = run_dir}), *group);
      } catch (const UserError& error) {
        errors[r] = error.what();
      }
    });
  for (std::thread& rank : ranks) rank.join();
  return errors;
}

std::string recipe_of_rate(const std::string& lr, const std::string& more = "") {
  return "seed = 1\n[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nbatch_size = 8\n"
         "[optimizer]\nkind = 'sgd'\nlr = " +
         lr + "\n[train]\nmax_duration = '1ba'\n" + more;
}

// A recipe of more than 4 kB, in a text that is not read until a checkpoint is saved.
std::string long_recipe_of_rate(const std::string& lr) {
  return recipe_of_rate(lr, "[checkpoint]\nsave_ignore_keys = ['" + std::string(5000, 'x') + "']\n");
}

TEST(StartAgreementTest, RanksThatWereGivenTheSameMakeTheJob) {
  const Scratch folder;
  EXPECT_THAT(errors_of({long_recipe_of_rate("0.1"), long_recipe_of_rate("0.1"), long_recipe_of_rate("0.1")},
                        folder.path("run")),
              Each(Eq("")));
}

TEST(StartAgreementTest, TheKeyInWhichLongRecipesDifferIsNamed) {
  const Scratch folder;
  EXPECT_THAT(errors_of({long_recipe_of_rate("0.1"), long_recipe_of_rate("0.2")}, folder.path("run")),
              Each(Eq("rank 1 was given another recipe than rank 0: optimizer.lr (0.2 against 0.1)")));
}

constexpr const char* kNcclOnTheCpu = "[device]\nkind = 'cpu'\n[collectives]\nbackend = 'nccl'\n";

TEST(StartAgreementTest, TheTroubleOfOneRankIsThatOfAllAndNamesTheRank) {
  const Scratch folder;
  const std::string before_own_data = recipe_of_rate("0.1", kNcclOnTheCpu);
  EXPECT_THAT(errors_of({recipe_of_rate("0.1"), before_own_data}, folder.path("run")),
              Each(AllOf(HasSubstr("rank 1: test.toml"), HasSubstr("it joins GPUs"))));
  const std::string no_recipe = recipe_of_rate("'fast'");
  EXPECT_THAT(errors_of({recipe_of_rate("0.1"), no_recipe}, folder.path("run")),
              Each(AllOf(HasSubstr("rank 1: test.toml"), HasSubstr("optimizer.lr"))));
}

TEST(StartAgreementTest, TheTroubleOfAllRanksNamesNone) {
  const Scratch folder;
  const std::string wrong = recipe_of_rate("0.1", kNcclOnTheCpu);
  EXPECT_THAT(errors_of({wrong, wrong}, folder.path("run")), Each(testing::StartsWith("test.toml")));
}

TEST(StartAgreementTest, ATroubleAfterTheRanksExchangedTheirDataIsAskedToo) {
  const Scratch folder;
  write_text(folder.path("run"), "a file in place of the run's folder");
  EXPECT_THAT(errors_of({recipe_of_rate("0.1"), recipe_of_rate("0.1")}, folder.path("run")),
              Each(HasSubstr("--run-dir")));
}

}  // namespace
}  // namespace tutti

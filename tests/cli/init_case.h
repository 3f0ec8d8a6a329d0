#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cli/init/draft.h"
#include "data/proposals/look.h"
#include "tests/runtime/scratch.h"

namespace tutti {

// A folder with data that `tutti init` looks into.
class InitCase : public testing::Test {
 protected:
  Proposal proposed(const std::string& name, const std::string& tokenizer = "",
                    const std::vector<std::string>& targets = {}) const {
    return placed(look_at(scratch_.path(name), {tokenizer, targets}), scratch_.path());
  }
  // The value of a key; "" = none.
  static std::string line(const RecipeLines& lines, const std::string& key) {
    for (const RecipeLine& line : lines)
      if (line.key == key) return line.value;
    return "";
  }

  Scratch scratch_;
};

}  // namespace tutti

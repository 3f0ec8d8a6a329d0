#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "recipe/setting.h"

namespace tutti {

// A recipe that was drawn, as written.
struct DrawnRecipe {
  Setting recipe;
  int ranks = 1;
};

// Recipes to draw from: a written recipe with [[draw]]s, of which each adds drawn keys. A draw has a `key`
// and its `values`, or `options`, tables of keys as a recipe has them; algorithms, callbacks and loggers are
// added to those that are there. `ranks` is the number of ranks.
//
//   draw.probability    that anything is drawn; 1
//   draw.least, .most   so many different options are drawn; 1
//   draw.with           tags of earlier draws: nothing is drawn unless all of them are there
//   option.tags         what later draws may ask for
//   option.with         tags of earlier draws: the option is left out unless all of them are there
//   option.weight       how many options of weight 1 it is as likely as; 1
class RecipeSpace {
 public:
  static bool is_space(const Setting& written);

  // Throws UserError for mistakes in the draws.
  explicit RecipeSpace(Setting written);

  // The same recipe for the same seed and try. `ranks`: where the space does not say.
  DrawnRecipe draw(uint64_t seed, int number_of_try, int ranks) const;

  // The most ranks of a drawn recipe; `ranks` as above. Throws UserError for more than 1024.
  int most_ranks(int ranks) const;

 private:
  struct Option {
    Setting keys;
    std::set<std::string> tags, with;
    int64_t weight = 1;
  };
  struct Draw {
    double probability = 1;
    int64_t least = 1, most = 1;
    std::set<std::string> with;
    std::vector<Option> options;
  };
  // `given`: tags of earlier draws.
  static Draw read_draw(const Setting& written, const std::set<std::string>& given);
  static Option read_option(const Setting& written, const std::set<std::string>& given);

  Setting base_;
  std::vector<Draw> draws_;
};

}  // namespace tutti

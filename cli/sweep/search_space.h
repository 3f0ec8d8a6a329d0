#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

// Keys of a recipe and a value of each, as for --set.
using Assignments = std::vector<std::pair<std::string, std::string>>;

// The settings to try.
struct SearchSpace {
  std::vector<std::string> grid;    // "optimizer.lr=0.1,0.2" each
  std::vector<std::string> random;  // "KEY=0.1..0.5", "KEY=log:1e-4..1e-1", "KEY=int:1..8", "KEY=a,b,c" each
  int64_t draws = 0;                // of the random keys; 0 = not given
  uint64_t seed = 0;                // of the draws

  // Every choice of the grid, with every draw; equal settings once. Numbers are drawn with four digits.
  // Throws UserError for a text of another form.
  std::vector<Assignments> settings() const;

  // The same with whole keys in place of endings, as `whole` says.
  template <class Whole>
  SearchSpace with_keys(const Whole& whole) const {
    SearchSpace space = *this;
    for (auto* texts : {&space.grid, &space.random})
      for (std::string& text : *texts) {
        const std::size_t equals = std::min(text.find('='), text.size());
        text = whole(text.substr(0, equals)) + text.substr(equals);
      }
    return space;
  }
};

// A name of a folder: "lr=0.1,hidden=64-64", of the shortest endings of the keys.
std::string name_of(const Assignments& setting);

}  // namespace tutti

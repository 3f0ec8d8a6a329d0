#pragma once

#include <algorithm>
#include <list>
#include <vector>

namespace tutti {

// The collectives that a rank has launched on its device, over all groups, and that other ranks may not have.
class Launched {
 public:
  struct Collective {
    std::vector<int> ranks;  // of the world, those that take part
  };
  using Place = std::list<Collective>::iterator;

  Place add(std::vector<int> ranks) { return all_.insert(all_.end(), {std::move(ranks)}); }
  // All its ranks have launched it.
  void remove(Place place) { all_.erase(place); }

  // True if an earlier collective with other ranks is left. All ranks launch in one order: who has launched a
  // collective has launched all earlier ones of the same ranks.
  bool waits_for_others(Place place) {
    return std::any_of(all_.begin(), place, [&](const Collective& one) { return one.ranks != place->ranks; });
  }

 private:
  std::list<Collective> all_;  // in the order of launches
};

}  // namespace tutti

#pragma once

#include <string>
#include <vector>

#include "data/proposals/proposal.h"

namespace tutti {

// The kinds of samples of a proposal, as far as the choice of a model depends on them.
template <class Kind>
const Kind* samples_of(const Proposal& data) {
  return std::get_if<Kind>(&data.samples);
}
bool are_pictures(const Proposal& data);  // with channels, larger than those of CIFAR

// The model of a draft, and how such a model is trained by custom.
struct Network {
  RecipeLines model;                       // keys of [model]
  bool has_momentum = false;               // SGD with momentum trains the model, not AdamW
  std::vector<std::string> no_decay = {};  // patterns of parameters without weight decay
};

// The networks that take such samples, the default first: names of `tutti init --model`.
std::vector<std::string> networks_for(const Proposal& data);

// The fastest of them; "" if that is the chosen network, or the default in its place.
std::string lightest_network(const Proposal& data, const std::string& chosen);

// "" = the default. Throws UserError for another name.
Network network(const Proposal& data, const std::string& name);

}  // namespace tutti

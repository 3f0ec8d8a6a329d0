// A torch::nn::Module trained on all ranks: mpirun -np 4 ./four_ranks four_ranks.toml
#include <torch/nn.h>
#include <tutti/tutti.h>

struct Net : torch::nn::Module {
  torch::Tensor forward(torch::Tensor x) { return last(torch::relu(first(x.flatten(1)))); }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(64, 128));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(128, 10));
};

int main(int argc, char** argv) { return tutti::train_program<Net>(argc, argv); }

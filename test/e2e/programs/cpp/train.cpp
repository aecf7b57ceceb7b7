// A program without Python: a few steps of gradient descent, on two threads, with a range of its own round each step.
#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>

#include <cstdio>
#include <thread>

static double train(int steps)
{
    at::Tensor weight = at::full({4, 4}, 0.5).requires_grad_(), input = at::ones({8, 4});
    for (int step = 0; step < steps; step++) {
        RECORD_USER_SCOPE("training step");
        at::Tensor loss = at::mm(input, weight).relu().sum();
        loss.backward();
        c10::NoGradGuard no_grad;
        weight -= weight.grad() * 0.001;
        weight.mutable_grad().zero_();
    }
    return weight.sum().item<double>();
}

int main()
{
    double other = 0;
    std::thread thread([&] { other = train(5); });
    thread.join();
    std::printf("%.6f %.6f\n", train(10), other);
}

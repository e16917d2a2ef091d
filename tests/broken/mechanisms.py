"""Servers with a defect in one mechanism: in a choice, in counts, in cells or in cubes."""

from dataclasses import replace

import numpy as np

from compliance.mechanisms import cells, cube, selection
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import NO_FACTS, MechanismAnswer, exactly
from compliance.mechanisms.recommended import Recommended
from compliance.noise.sampling import System
from compliance.records.people import Records
from fairwall.laws.privacy.exposure import NO_LIMIT
from tests.broken import broken


@broken("C541", "Chooses the fairest model, always.")
def chooses_the_fairest():
    System.bernoulli_exp = lambda _, exponents: np.asarray(exponents) == 0


@broken("C541", "Chooses with twice the epsilon that was offered.")
def chooses_with_twice_the_epsilon():
    sound = selection.permute_and_flip_exponents
    selection.permute_and_flip_exponents = lambda scores, sensitivity, epsilon: sound(scores, sensitivity, 2 * epsilon)


@broken("C542", "Turns over the advantaged alone.")
def turns_over_one_group():
    sound = Records.turned

    def turned(self, people):
        groups = sound(self, np.zeros(self.people, bool))
        return sound(self, people & (groups == 1))

    Records.turned = turned


@broken("C543", "Counts the disadvantaged without noise.")
def counts_people_exactly():
    sound = System.laplace

    def laplace(self, values, scale, step):
        return sound(self, values, 0.0 if step == 1.0 and len(values) == 1 else scale, step)

    System.laplace = laplace


@broken("C545", "Tests without noise whether groups are large enough.")
def tests_groups_without_noise():
    counts_people_exactly()  # a test of groups counts the disadvantaged


@broken("C546", "Answers exactly where it may choose how to answer.")
def recommends_exactly():
    sound = Recommended.release

    def release(self, question, facts, epsilon, delta, noise):
        found = sound(self, question, facts, epsilon, delta, noise)
        return exactly(question.gaps()) if question.queries < 50 and question.metric == "fpr" else found

    Recommended.release = release


@broken("C547", "Draws each side of a cube from a cube of its own.")
def draws_a_cubes_sides_apart():
    sound = System.cube
    System.cube = lambda self, values, scale, step, least=0: np.concatenate(
        [sound(self, values[k : k + 1], scale, step, least) for k in range(len(values))]
    )


@broken(
    "C549", "Draws the own sums' noise as if all of epsilon were theirs, though common sums have been bought of it."
)
def spends_all_of_epsilon_on_both_cubes():
    sound = cube.best_split

    def split(values, epsilon, step, *, size_known):
        found = sound(values, epsilon, step, size_known=size_known)
        return replace(found, own_law=replace(found.own_law, scale=min(found.own_law.scale, 1 / epsilon)))

    cube.best_split = split


@broken("C548", "Draws the noise on cells for 16 times the epsilon that it charges.")
def pays_little_for_cells():
    sound = System.laplace
    # Noise on a grid of 1 is that on whole numbers.
    System.laplace = lambda self, values, scale, step: sound(self, values, scale / 16 if step == 1 else scale, step)


@broken("C550", "Draws new noise for a batch that costs nothing, in place of what was bought.")
def answers_from_cells_anew():
    sound = CellsMechanism.release

    def release(self, question, facts, epsilon, delta, noise):
        if not self.is_free(facts, epsilon):
            return sound(self, question, facts, epsilon, delta, noise)
        anew = sound(self, question, NO_FACTS, epsilon, delta, noise)
        return MechanismAnswer(anew.values, NO_FACTS, anew.low, anew.high)

    CellsMechanism.release = release


@broken("C551", "Cuts people into as many cells as make the least error, whatever that gives away.")
def cells_without_a_limit():
    sound = cells._buy
    cells._buy = lambda question, facts, epsilon, noise, _, besides: sound(
        question, facts, epsilon, noise, NO_LIMIT, besides
    )


@broken("C552", "Answers from cells that were bought at less than half of what a batch offers, for nothing.")
def free_beyond_what_was_bought():
    sound = CellsMechanism.is_free
    CellsMechanism.is_free = lambda self, facts, epsilon, question=None: sound(self, facts, epsilon / 2, question)

"""Servers that add charges up wrongly, or round what is left."""

from dataclasses import replace
from decimal import Decimal

from compliance.answers import audit_service
from compliance.ledger import Ledger, accountant
from compliance.ledger.accountant import Budget, Rule
from fairwall.laws.privacy.amounts import written
from tests.broken import broken


@broken("C409", "Adds charges up in float64: twenty times 0.1 are more than 2.")
def adds_up_in_float64():
    def affords(self, losses, loss):
        return (
            sum([charged.epsilon for charged, count in losses.items() for _ in range(count)], loss.epsilon)
            <= self.epsilon
        )

    Budget.affords = affords


@broken("C420", "Adds charges up in float64, in the order of its table.")
def sums_in_float64():
    accountant._epsilons = lambda losses: Decimal(repr(sum(loss.epsilon * count for loss, count in losses.items())))


@broken("C409", "Takes a budget for enough that is less than a billionth too small.")
def overspends_by_a_crumb():
    def affords(self, losses, loss):
        return self.spent({**losses, loss: losses.get(loss, 0) + 1}) <= self.epsilon * (1 + 1e-9)

    Budget.affords = affords


@broken("C420", "Rounds charges to a millionth.")
def charges_millionths():
    sound = Ledger.settle

    def settle(self, request, answer, *how, **room):
        loss = request.loss
        if loss.epsilon > 1e-6:
            loss = replace(loss, epsilon=round(loss.epsilon, 6))
        return sound(self, replace(request, loss=loss), answer, *how, **room)

    Ledger.settle = settle


@broken("C420", "Tells what is left with nine digits.")
def tells_rounded_remainders():
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        told = sound(case, header, metric, predictions, context, *rest, **named)
        told.epsilon_remaining = float(f"{told.epsilon_remaining:.9g}")
        return told

    audit_service._answer = settle


@broken("C420", "Rounds what is left now, in the answer to a repeat.")
def tells_rounded_remainders_now():
    sound = audit_service._answer

    def settle(case, header, metric, predictions, context, *rest, **named):
        told = sound(case, header, metric, predictions, context, *rest, **named)
        if told.HasField("epsilon_remaining_now"):
            told.epsilon_remaining_now = round(told.epsilon_remaining_now, 3)
        return told

    audit_service._answer = settle


@broken("C421", "Rounds what is left to the nearest float64, which may be more.")
def tells_more_than_is_left():
    accountant.at_most = float


@broken("C431", "Leaves the smaller term of advanced composition away.")
def advanced_without_the_first_term():
    sound = accountant._RULES[Rule.ADVANCED]

    def advanced(losses, delta, limit):
        squares = sum(written(loss.epsilon) ** 2 * count for loss, count in losses.items())
        return sound(losses, delta, limit) - squares / 2

    accountant._RULES = {**accountant._RULES, Rule.ADVANCED: advanced}


@broken("C432", "Counts half of what a batch costs, under zCDP.")
def half_of_rho():
    sound = accountant._rho
    accountant._rho = lambda loss: sound(loss) / 2

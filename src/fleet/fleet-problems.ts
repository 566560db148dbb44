import type { Problem } from '../base/errors.ts';
import { quoteValue } from '../codec/document-problems.ts';

/** Problems of fleet files. Their place is added by who finds them. */

function error(code: string, message: string, hint?: string): Problem {
  return { code, message, ...(hint === undefined ? {} : { hint }) };
}

/** A secret, or what looks like one. Its value is never shown. */
export function inlineSecret(what: string, hint: string): Problem {
  return error('FLEET_INLINE_SECRET', `${what} does not belong in a fleet file: the file is meant to be shared and versioned`, hint);
}

/** Two hosts of one name. */
export function duplicateHost(name: string, first: string): Problem {
  return error(
    'FLEET_DUPLICATE_NAME',
    `the host ${quoteValue(name)} is given twice, first at ${first}`,
    'Give each host a name of its own',
  );
}

/** Two groups of one name. */
export function duplicateGroup(name: string, first: string): Problem {
  return error('FLEET_DUPLICATE_NAME', `the group ${quoteValue(name)} is given twice, first at ${first}`, 'Put them together');
}

/** Two hosts that are reached in the same way. */
export function duplicateAddress(address: string, { name, first, where }: { name: string; first: string; where: string }): Problem {
  const message = `${name} is reached at ${address}, as is ${first} (${where})`;
  return error('FLEET_DUPLICATE_ADDRESS', message, 'Fix the address, or remove one of the hosts');
}

/** Two hosts that would register as one node, or with one IP. */
export function duplicateNode(what: 'nodeName' | 'nodeIP', value: string, { name, first }: { name: string; first: string }): Problem {
  const hint = what === 'nodeName' ? 'Make it a template such as {{ name }}, or give it host by host' : 'Give each host its own';
  return error('FLEET_DUPLICATE_NODE', `${name} gets ${what} ${quoteValue(value)}, as does ${first}`, hint);
}

/** A name no host or group can have. */
export function invalidInventoryName(what: 'host' | 'group', name: string): Problem {
  const hint =
    what === 'host'
      ? 'A name has letters, digits, dashes, dots, colons and underscores, at most 253'
      : "A name has letters, digits, dashes, dots and underscores; 'all' stands for all hosts";
  return error('FLEET_INVALID_NAME', `${quoteValue(name)} is not the name of a ${what}`, hint);
}

/** A group nobody declared. */
export function unknownGroup(name: string, known: readonly string[], likely: string | null): Problem {
  const list = known.slice(0, 10).join(', ');
  const hint =
    likely !== null
      ? `Did you mean ${likely}?`
      : known.length === 0
        ? 'Declare it under groups'
        : `Declare it under groups; there are ${list}${known.length > 10 ? ', …' : ''}`;
  return error('FLEET_UNKNOWN_GROUP', `there is no group ${quoteValue(name)}`, hint);
}

/** Something of a range is wrong. */
export function invalidRange(message: string, hint: string): Problem {
  return error('FLEET_INVALID_RANGE', message, hint);
}

/** An address with a range of another length than the one of the name. */
export function rangesDiffer(names: number, addresses: number): Problem {
  const message = `the name stands for ${hosts(names)}, the address for ${addresses}`;
  return error('FLEET_INVALID_RANGE', message, 'Make both ranges equally long, or write the address with {{ number }}');
}

/** A file that asks for more hosts than a fleet may have. */
export function tooManyHosts(limit: number): Problem {
  return error('FLEET_TOO_MANY_HOSTS', `there are more than ${limit} hosts`, 'Check the ends of the ranges, or make several fleets');
}

/** Not a template. `fault` is a clause about the text. */
export function invalidTemplate(text: string, fault: string): Problem {
  return error('FLEET_INVALID_TEMPLATE', `${quoteValue(text)} ${fault}`, 'Write the name of a variable: {{ rack }}; braces as {{ "{{" }}');
}

/** A value that begins with braces and no quotes: YAML takes it for a mapping. */
export const QUOTE_TEMPLATE = 'Put a value that begins with {{ in quotes: "{{ rack }}"';

/** A variable that a host does not have. */
export function unknownVariable(variable: string, host: string, likely: string | null, others: number): Problem {
  const message = `${host}${others === 0 ? '' : ` (and ${hosts(others)} more)`} has no variable ${quoteValue(variable)}`;
  return error('FLEET_UNKNOWN_VARIABLE', message, likely === null ? 'Declare it under variables' : `Did you mean ${likely}?`);
}

/** Variables that need each other. */
export function variableCycle(names: readonly string[]): Problem {
  return error('FLEET_VARIABLE_CYCLE', `variables lead in a circle: ${names.join(', then ')}`, 'Give one of them a value of its own');
}

/** A name that means something already. */
export function reservedVariable(name: string): Problem {
  return error('FLEET_RESERVED_VARIABLE', `${name} is a variable of every host and cannot be declared`, 'Choose another name');
}

/** A name no template could write. */
export function invalidVariable(name: string): Problem {
  const hint = 'A name has letters, digits and underscores, and begins with a letter or underscore';
  return error('FLEET_INVALID_NAME', `${quoteValue(name)} is not the name of a variable`, hint);
}

/** An address that could not be connected to. */
export function invalidHostAddress(address: string): Problem {
  const at = /^[^@\s]+@[^@\s]+$/.test(address);
  const port = /^[^:[\]\s]+:[0-9]+$/.test(address) || /^\[.*\]/.test(address);
  const hint = at
    ? 'Write the user under ssh.user'
    : port
      ? 'Write the port under ssh.port, and an IPv6 address without brackets'
      : 'Write a host name, an IP address or a Host of ssh_config';
  return error('FLEET_INVALID_ADDRESS', `${quoteValue(address)} is not an address`, hint);
}

/** A worked-out value that does not fit where it stands. `what` is a clause. */
export function invalidFleetValue(message: string, hint?: string): Problem {
  return error('FLEET_INVALID_VALUE', message, hint);
}

/** Two members that say the same thing in different ways. */
export function setTwice(a: string, b: string): Problem {
  return error('FLEET_CONFLICT', `${a} and ${b} say the same thing`, 'Keep one of them');
}

/** Hosts that are reached through each other. */
export function bastionCycle(names: readonly string[]): Problem {
  const hint = 'Write ssh.bastion: none for the host that is reached directly';
  return error('FLEET_BASTION_CYCLE', `bastions lead in a circle: ${names.join(', then ')}`, hint);
}

/** What is imported cannot be read. */
export function importInvalid(message: string, hint?: string): Problem {
  return error('FLEET_IMPORT_INVALID', message, hint);
}

/** Something of an imported inventory that has no effect here. */
export function importIgnored(message: string, hint?: string): Problem {
  return { ...error('FLEET_IMPORT_IGNORED', message, hint), severity: 'warning' };
}

/** A fleet without a host. */
export function noHosts(): Problem {
  return error('FLEET_EMPTY', 'there is no host in this fleet', 'List hosts, or import them');
}

/** `3 hosts`, `1 host`. */
function hosts(count: number): string {
  return count === 1 ? '1 host' : `${count} hosts`;
}

import type { Problem } from '../../base/errors.ts';
import { quoteValue } from '../../codec/document-problems.ts';

/** Problems of fleet files. The caller adds their position. */

function error(code: string, message: string, hint?: string): Problem {
  return { code, message, hint };
}

/** A secret, or a value that looks like one. The message never contains the value. */
export function inlineSecret(what: string, hint: string): Problem {
  return error('FLEET_INLINE_SECRET', `${what} is not allowed in a fleet file, which is meant to be shared and versioned`, hint);
}

export function duplicateHost(name: string, first: string): Problem {
  return error('FLEET_DUPLICATE_NAME', `the host ${quoteValue(name)} is defined twice, first at ${first}`, 'Give each host a unique name');
}

export function duplicateGroup(name: string, first: string): Problem {
  return error('FLEET_DUPLICATE_NAME', `the group ${quoteValue(name)} is defined twice, first at ${first}`, 'Merge both groups');
}

export function duplicateAddress(address: string, { name, first, where }: { name: string; first: string; where: string }): Problem {
  const message = `hosts "${name}" and "${first}" (${where}) have the same address ${address}`;
  return error('FLEET_DUPLICATE_ADDRESS', message, 'Fix the address, or remove one of the hosts');
}

export function duplicateNode(what: 'nodeName' | 'nodeIP', value: string, { name, first }: { name: string; first: string }): Problem {
  const hint =
    what === 'nodeName' ? 'Use a template such as {{ name }}, or set a nodeName for each host' : 'Set a different node IP for each host';
  return error('FLEET_DUPLICATE_NODE', `hosts "${name}" and "${first}" have the same ${what} ${quoteValue(value)}`, hint);
}

export function invalidInventoryName(what: 'host' | 'group', name: string): Problem {
  const hint =
    what === 'host'
      ? 'Use letters, digits, dashes, dots, colons and underscores, at most 253 characters'
      : "Use letters, digits, dashes, dots and underscores; 'all' is reserved for all hosts";
  return error('FLEET_INVALID_NAME', `${quoteValue(name)} is not a valid ${what} name`, hint);
}

export function unknownGroup(name: string, known: readonly string[], likely: string | null): Problem {
  const list = known.slice(0, 10).join(', ');
  const hint =
    likely !== null
      ? `Did you mean ${likely}?`
      : known.length === 0
        ? 'Declare the group under groups'
        : `Declare the group under groups; existing groups: ${list}${known.length > 10 ? ', …' : ''}`;
  return error('FLEET_UNKNOWN_GROUP', `group ${quoteValue(name)} does not exist`, hint);
}

export function invalidRange(message: string, hint: string): Problem {
  return error('FLEET_INVALID_RANGE', message, hint);
}

export function rangesDiffer(names: number, addresses: number): Problem {
  const message = `the name range has ${hosts(names)}, but the address range has ${addresses}`;
  return error('FLEET_INVALID_RANGE', message, 'Use ranges of the same length, or an address with {{ number }}');
}

export function tooManyHosts(limit: number): Problem {
  return error('FLEET_TOO_MANY_HOSTS', `the fleet has more than ${limit} hosts`, 'Check the ends of the ranges, or split the fleet');
}

/** An invalid template. `fault` is a clause about the text. */
export function invalidTemplate(text: string, fault: string): Problem {
  return error(
    'FLEET_INVALID_TEMPLATE',
    `${quoteValue(text)} ${fault}`,
    'Write only the name of a variable between the braces: {{ rack }}. Write literal braces as {{ "{{" }}',
  );
}

/** An unquoted value that begins with braces, which YAML reads as an object. */
export const QUOTE_TEMPLATE = 'Quote a value that begins with {{: "{{ rack }}"';

export function unknownVariable(variable: string, host: string, likely: string | null, others: number): Problem {
  const message = `the variable ${quoteValue(variable)} is not defined for host "${host}"${others === 0 ? '' : ` and ${others} more ${others === 1 ? 'host' : 'hosts'}`}`;
  return error('FLEET_UNKNOWN_VARIABLE', message, likely === null ? 'Declare the variable under variables' : `Did you mean ${likely}?`);
}

export function variableCycle(names: readonly string[]): Problem {
  return error(
    'FLEET_VARIABLE_CYCLE',
    `circular reference between variables: ${names.join(' -> ')}`,
    'Set one of these variables to a value without references',
  );
}

export function reservedVariable(name: string): Problem {
  return error('FLEET_RESERVED_VARIABLE', `${name} is a built-in variable of every host and cannot be declared`, 'Choose another name');
}

export function invalidVariable(name: string): Problem {
  const hint = 'Use letters, digits and underscores; begin with a letter or underscore';
  return error('FLEET_INVALID_NAME', `${quoteValue(name)} is not a valid variable name`, hint);
}

export function invalidHostAddress(address: string): Problem {
  const at = /^[^@\s]+@[^@\s]+$/.test(address);
  const port = /^[^:[\]\s]+:[0-9]+$/.test(address) || /^\[.*\]/.test(address);
  const hint = at
    ? 'Set the user in ssh.user'
    : port
      ? 'Set the port in ssh.port, and write an IPv6 address without brackets'
      : 'Write a host name, an IP address or a Host alias of ssh_config';
  return error('FLEET_INVALID_ADDRESS', `${quoteValue(address)} is not a valid address`, hint);
}

export function invalidFleetValue(message: string, hint?: string): Problem {
  return error('FLEET_INVALID_VALUE', message, hint);
}

export function mutuallyExclusiveMembers(a: string, b: string): Problem {
  return error('FLEET_CONFLICT', `${a} and ${b} are mutually exclusive`, 'Remove one of them');
}

export function bastionCycle(names: readonly string[]): Problem {
  const hint = 'Set ssh.bastion: none for the host that is reached directly';
  return error('FLEET_BASTION_CYCLE', `circular reference between bastions: ${names.join(' -> ')}`, hint);
}

export function importInvalid(message: string, hint?: string): Problem {
  return error('FLEET_IMPORT_INVALID', message, hint);
}

export function importIgnored(message: string, hint?: string): Problem {
  return { ...error('FLEET_IMPORT_IGNORED', message, hint), severity: 'warning' };
}

export function ansibleWarning(text: string): Problem {
  return { ...error('FLEET_ANSIBLE_WARNING', `ansible-inventory: ${text}`), severity: 'warning' };
}

/** Imported hosts of which none is a control plane. `groups`: those of the inventory. */
export function noControlPlane(hosts: number, groups: readonly string[]): Problem {
  const all = hosts === 1 ? 'the only host is a worker' : `all ${hosts} hosts are workers`;
  const names =
    groups.length === 0 ? '' : `. Groups of the inventory: ${groups.slice(0, 20).join(', ')}${groups.length > 20 ? ', ...' : ''}`;
  const hint = `Set role: control-plane for ${groups.length === 0 ? 'a host' : 'a group or a host'} in the fleet file, if the fleet has control planes`;
  return { ...error('FLEET_IMPORT_ROLE', `no control plane was found: ${all}${names}`, hint), severity: 'warning' };
}

/** A group with a name like that of control planes, which got no role. `workers`: its hosts. */
export function groupWithoutRole(group: string, workers: string): Problem {
  const message = `the name of group "${group}" resembles that of control planes, but ${workers}`;
  const hint = 'If they are control planes, set role: control-plane for the group in the fleet file';
  return { ...error('FLEET_IMPORT_ROLE', message, hint), severity: 'warning' };
}

export function noHosts(): Problem {
  return error('FLEET_EMPTY', 'the fleet has no hosts', 'Add entries to hosts or imports');
}

function hosts(count: number): string {
  return count === 1 ? '1 host' : `${count} hosts`;
}

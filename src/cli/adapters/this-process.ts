import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import type { ThisProcess } from '../../base/this-process.ts';

/** Identity of this process, as recorded in the locks on hosts. */
export function thisProcess(): ThisProcess {
  return {
    name: `${userName()}@${hostname()}`,
    id: process.pid,
    machine: [hostname(), bootId(), processSpace()].join('/'),
    isRunning,
  };
}

/** Go's names of processor architectures that differ from those of Node.js. */
const GO_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386', ppc64: 'ppc64le' };

/** The Node.js of this process, and its platform as Go names it. */
export function runtimeOfProcess(): { readonly nodeVersion: string; readonly platform: string } {
  return { nodeVersion: process.version, platform: `${process.platform}/${GO_ARCHITECTURES[process.arch] ?? process.arch}` };
}

/** A user without an entry has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? '');
  }
}

/** Process ids restart with each boot. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

/** Each container of a host has its own process ids. */
function processSpace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '');
  } catch {
    return '';
  }
}

/**
 * A process of another user (EPERM) is running as well. A zombie is not running: in a container it may never
 * be reaped.
 */
function isRunning(id: number): boolean {
  try {
    process.kill(id, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
  return !['Z', 'X'].includes(stateOf(id));
}

/** The state letter of ps(1); empty without proc(5). */
function stateOf(id: number): string {
  try {
    // The command name in front of the letter may contain any character, including brackets.
    return /\) (\S) [^)]*$/.exec(readFileSync(`/proc/${id}/stat`, 'latin1'))?.[1] ?? '';
  } catch {
    return '';
  }
}

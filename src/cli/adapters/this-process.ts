import { readFileSync, readlinkSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import process from 'node:process';
import type { ThisProcess } from '../../base/this-process.ts';

/** This process, as it is told to hosts it writes to. */
export function thisProcess(): ThisProcess {
  return {
    name: `${userName()}@${hostname()}`,
    id: process.pid,
    machine: [hostname(), bootId(), processSpace()].join('/'),
    isRunning,
  };
}

/** A user without an entry has no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? '');
  }
}

/** Process ids begin anew with each boot. */
function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}

/** Containers of one machine count their processes each for itself. */
function processSpace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid').replace(/\D/g, '');
  } catch {
    return '';
  }
}

/** A process of somebody else runs, too. One that has ended and that nobody has asked about yet does not: in a container it may stay so for ever. */
function isRunning(id: number): boolean {
  try {
    process.kill(id, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
  return !['Z', 'X'].includes(stateOf(id));
}

/** The letter of ps; empty where there is no proc(5). */
function stateOf(id: number): string {
  try {
    // The name before it may hold anything, brackets too.
    return /\) (\S) [^)]*$/.exec(readFileSync(`/proc/${id}/stat`, 'latin1'))?.[1] ?? '';
  } catch {
    return '';
  }
}

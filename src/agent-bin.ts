#!/usr/bin/env node
import { AGENT_COMMANDS } from './cli/agent-commands.ts';
import { runCommands } from './cli/run-commands.ts';
import { runProcess } from './run-process.ts';
import { VERSION } from './version.ts';
import { createAgentServices } from './wiring-agent.ts';

// The program that `dynamic enable` and `controller install` install on hosts: agent and controller, in one file and in half the
// memory of the whole program.
runProcess((argv, environment) =>
  runCommands({ argv, services: createAgentServices(environment), version: VERSION, commands: AGENT_COMMANDS }),
);

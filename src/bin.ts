#!/usr/bin/env node
import { runCli } from './cli/run.ts';
import { runProcess } from './run-process.ts';
import { VERSION } from './version.ts';
import { createServices } from './wiring.ts';

runProcess((argv, environment) => runCli(argv, createServices(environment), VERSION));

import { Component, ElementRef, afterNextRender, inject, input, linkedSignal, signal, viewChild } from '@angular/core';
import { Session } from '../session';

/** Asks for the key. */
@Component({
  selector: 'app-login',
  templateUrl: './login.html',
  styleUrl: './login.css',
})
export class Login {
  readonly problem = input<string | null>(null);

  protected readonly shownProblem = linkedSignal(() => this.problem());
  protected readonly waiting = signal(false);
  private readonly session = inject(Session);
  private readonly field = viewChild.required<ElementRef<HTMLInputElement>>('field');

  constructor() {
    afterNextRender(() => {
      this.field().nativeElement.focus();
    });
  }

  protected async submit(event: Event): Promise<void> {
    event.preventDefault();
    const field = this.field().nativeElement;
    if (field.value === '' || this.waiting()) return;
    this.waiting.set(true);
    this.shownProblem.set(null);
    try {
      if (!(await this.session.login(field.value))) {
        this.shownProblem.set('This key is not right.');
        field.select();
      }
    } catch {
      this.shownProblem.set('The server does not answer.');
    } finally {
      this.waiting.set(false);
    }
  }
}
